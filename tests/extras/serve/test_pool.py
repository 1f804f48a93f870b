"""Worker processes: replaced when they die, exchanged at a reload, gone after the end."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from softsearch.errors import BundleError
from softsearch.extras.serve import pool, workers
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.line_queue import Request, RequestError
from softsearch.extras.serve.models import Model, ServedGlossary, encode_lines
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.workers import WorkerDiedError
from softsearch.runtime.stages.chosen import Stages
from softsearch.runtime.stages.terms import TermStage
from softsearch.runtime.translator import Translator
from tests.extras.serve.dispatchers import Log, Open, frozen, pids, until
from tests.extras.serve.worker_faults import DEADLY, ONE_OPENS
from tests.support.bundles import make_bundle
from tests.support.serving import alive

LINES = ["one two three", "ten", "two cats", "four five six"]


def _exists(pid: int) -> bool:
    """Whether there is such a process; a zombie is one, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _ask(dispatcher: Dispatcher, line: str) -> str:
    (found,) = await dispatcher.translate("small", [line])
    return found.text


@pytest.mark.parametrize("times", [1, 3])
async def test_a_killed_worker_is_replaced_and_no_line_is_lost(
    serve: Open, log: Log, bundle_dir: Path, caplog: pytest.LogCaptureFixture, times: int
) -> None:
    expected = [found.text for found in Translator(bundle_dir, threads=1).translate(LINES)]
    async with serve(workers=2) as dispatcher:
        for _ in range(times):
            before = pids(dispatcher)
            with frozen(dispatcher):
                asks = [asyncio.ensure_future(_ask(dispatcher, line)) for line in LINES * 5]
                await until(lambda: not dispatcher._pool.idle)
                os.kill(before[0], signal.SIGKILL)
            assert await asyncio.gather(*asks) == expected * 5
            await until(lambda: dispatcher.workers == 2)
            assert before[1] in pids(dispatcher)
            assert before[0] not in pids(dispatcher)
            assert not _exists(before[0])
    assert log.deaths == times
    assert log.lines == {"done": 20 * times}
    assert "exit code -9" in caplog.text


async def test_an_idle_worker_that_dies_is_replaced(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        (before,) = pids(dispatcher)
        os.kill(before, signal.SIGKILL)
        await until(lambda: log.deaths)
        assert not dispatcher.ready
        assert await _ask(dispatcher, "ten")  # waits for the new one
        assert dispatcher.ready
        assert pids(dispatcher) != [before]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)])
async def test_workers_ignore_the_signals_that_a_terminal_or_systemd_sends_to_all(
    serve: Open, log: Log, number: signal.Signals
) -> None:
    async with serve() as dispatcher:
        (before,) = pids(dispatcher)
        os.kill(before, number)
        assert await _ask(dispatcher, "ten")
        assert pids(dispatcher) == [before]
    assert log.deaths == 0


async def test_a_request_that_kills_two_workers_is_given_up_and_the_others_go_on(serve: Open, log: Log) -> None:
    """Fault: a request kills its workers. Effect: given up after two; other requests go on."""
    async with serve() as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(_ask(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            asks = [asyncio.ensure_future(_ask(dispatcher, line)) for line in [*LINES, DEADLY, *LINES]]
            await until(lambda: dispatcher.waiting == 9)
        found = await asyncio.gather(begun, *asks, return_exceptions=True)
    lost = [answer for answer in found if not isinstance(answer, str)]
    assert [type(answer) for answer in lost] == [RequestError]
    assert "2 worker processes died on this request" in str(lost[0])
    assert found[5] is lost[0]
    assert log.deaths == 2
    assert log.lines == {"done": 9, "lost": 1}
    assert log.batches == [1] * 9  # after the first death each request is tried by itself


async def test_a_client_that_has_left_is_not_tried_again(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        (before,) = pids(dispatcher)
        with frozen(dispatcher):
            ask = asyncio.ensure_future(_ask(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            ask.cancel()
            await asyncio.gather(ask, return_exceptions=True)
            os.kill(before, signal.SIGKILL)
        assert await _ask(dispatcher, "two cats")
    assert log.batches == [1]


async def test_nothing_unexpected_ends_the_replacement(
    serve: Open, log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "_FIRST_PAUSE", 0.01)
    real, failures = pool.open_models, iter([ZeroDivisionError("a surprise"), RuntimeError("can't start new thread")])

    def fail_first(bundles: Mapping[str, Path]) -> dict[str, Model]:
        if error := next(failures, None):
            raise error
        return real(bundles)

    thread = Mock(start=Mock(side_effect=RuntimeError("can't start new thread")))
    async with serve() as dispatcher:
        monkeypatch.setattr(pool, "open_models", fail_first)
        with monkeypatch.context() as patch:
            patch.setattr(workers, "threading", Mock(Thread=Mock(return_value=thread)))
            ask = asyncio.ensure_future(_ask(dispatcher, "ten"))  # cannot be sent, which ends the worker
            await until(lambda: log.deaths)
        assert await ask
    assert "ZeroDivisionError" in caplog.text
    assert caplog.text.count("cannot be replaced, next attempt") == 2


async def test_a_worker_that_cannot_be_replaced_is_tried_again_until_it_can(
    serve: Open, log: Log, victim: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "_FIRST_PAUSE", 0.05)
    away = victim.with_name("away")
    async with serve(victim, deadline=0.5) as dispatcher:
        (before,) = pids(dispatcher)
        victim.rename(away)
        with frozen(dispatcher):
            ask = asyncio.ensure_future(_ask(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            os.kill(before, signal.SIGKILL)
        await until(lambda: caplog.text.count("cannot be replaced, next attempt") >= 2)
        assert not dispatcher.ready
        with pytest.raises(RequestError):  # not for ever, although it had begun once
            await ask
        away.rename(victim)
        await until(lambda: dispatcher.ready)
        assert await _ask(dispatcher, "ten")
    assert "expected the folder of an exported bundle" in caplog.text


async def test_reload_under_load_loses_no_request_and_ends_with_the_new_bundle(
    serve: Open, log: Log, victim: Path
) -> None:
    old = [found.text for found in Translator(victim, threads=1).translate(LINES)]
    async with serve(victim, workers=2) as dispatcher:
        before, facts = pids(dispatcher), dispatcher.models["small"]
        assert await asyncio.gather(*(_ask(dispatcher, line) for line in LINES)) == old
        make_bundle(victim, seed=1)
        done = asyncio.Event()

        async def client() -> set[str]:
            seen = set()
            while not done.is_set():
                seen.add(await _ask(dispatcher, LINES[0]))
            return seen

        clients = [asyncio.ensure_future(client()) for _ in range(8)]
        await dispatcher.load()
        done.set()
        seen = set.union(*await asyncio.gather(*clients))
        assert not {*before} & {*pids(dispatcher)}
        assert dispatcher.workers == 2
        assert dispatcher.models["small"].sha256 != facts.sha256
        await until(lambda: not any(map(_exists, before)))
        new = [await _ask(dispatcher, line) for line in LINES]
        assert seen <= {old[0], new[0]}
        assert log.lines == {"done": sum(log.batches)}
    assert new == [found.text for found in Translator(victim, threads=1).translate(LINES)] != old
    assert log.deaths == 0


async def test_lines_that_wait_at_a_reload_are_encoded_as_the_new_bundle_reads_them(serve: Open, victim: Path) -> None:
    async with serve(victim) as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(_ask(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            waiting = [asyncio.ensure_future(_ask(dispatcher, line)) for line in LINES]
            make_bundle(victim, words=True)  # with another vocabulary
            await dispatcher.load()
            found = await asyncio.gather(*waiting)
        await begun

    assert found == [found.text for found in Translator(victim, threads=1).translate(LINES)]


async def test_terms_of_lines_that_wait_at_a_reload_stay(serve: Open, victim: Path, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("two\tdrei\n")
    wanted = [each.text for each in Translator(victim, threads=1).translate(LINES, glossary=path)]
    async with serve(victim, glossary={"numbers": path}) as dispatcher:
        path.unlink()  # it is read once
        stages = Stages((TermStage(glossary=ServedGlossary("numbers")),))
        group = dispatcher.model("small").translation_group({}, stages)
        work, loop = partial(encode_lines, are_pairs=False), asyncio.get_running_loop()
        blank = [None] * len(LINES)
        encoded = await dispatcher.prepare(group.model, work, LINES, blank, group.finders)
        request = Request(group, LINES, None, loop.create_future(), loop.time(), encoded)
        await dispatcher.load()
        found = [each.text for each in await dispatcher._answers(request)]
    assert found == wanted != [each.text for each in Translator(victim, threads=1).translate(LINES)]


async def test_a_bad_bundle_at_a_reload_leaves_the_old_one(serve: Open, victim: Path) -> None:
    """Fault: a broken bundle at a reload. Effect: the old models stay."""
    async with serve(victim, workers=2) as dispatcher:
        before, text = pids(dispatcher), await _ask(dispatcher, "ten")
        for name, content in (("src.model", b"damaged"), ("encoder.onnx", b"damaged")):
            (victim / name).write_bytes(content)
            with pytest.raises(BundleError, match="copy or export the bundle again"):
                await dispatcher.load()
        assert pids(dispatcher) == before
        assert dispatcher.ready
        assert await _ask(dispatcher, "ten") == text


async def test_a_bundle_that_only_the_worker_finds_bad_leaves_the_old_one(serve: Open, victim: Path) -> None:
    async with serve(victim) as dispatcher:
        before = pids(dispatcher)
        make_bundle(victim, graphs={name: {"inputs": [], "outputs": []} for name in ("encoder", "decoder_step")})
        with pytest.raises(BundleError, match="export the bundle again"):
            await dispatcher.load()
        assert pids(dispatcher) == before
        assert await _ask(dispatcher, "ten")


async def test_a_reload_of_which_one_worker_dies_answers_nothing_with_the_new_bundle(
    serve: Open, log: Log, victim: Path
) -> None:
    async with serve(victim, workers=2) as dispatcher:
        before, facts, old = pids(dispatcher), dispatcher.models, await _ask(dispatcher, LINES[0])
        make_bundle(victim, seed=1)
        (victim.parent / ONE_OPENS).mkdir()
        (victim.parent / ONE_OPENS / "token").touch()
        reload = asyncio.ensure_future(dispatcher.load())
        seen = set()
        while not reload.done():
            seen.add(await _ask(dispatcher, LINES[0]))
        with pytest.raises(WorkerDiedError, match="exit code 9"):
            await reload
        seen |= {*await asyncio.gather(*(_ask(dispatcher, LINES[0]) for _ in range(50)))}
        assert (pids(dispatcher), dispatcher.models, seen) == (before, facts, {old})
    assert log.deaths == 0


async def test_a_worker_that_hangs_in_a_batch_is_replaced(
    serve: Open, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(batch_timeout=4.0) as dispatcher:
        (before,) = pids(dispatcher)
        with frozen(dispatcher):
            ask = asyncio.ensure_future(_ask(dispatcher, f"one{' ' * 1_000_000}two"))  # more than a pipe takes at once
            await until(lambda: not dispatcher._pool.idle)
            with pytest.raises(RequestError, match="a batch took more than 4 s"):
                await ask
        assert await _ask(dispatcher, "ten")  # by the new one
        assert pids(dispatcher) != [before]
    assert log.deaths == 1
    assert log.lines == {"done": 1}  # the long one was still being split and encoded
    assert "did not finish a batch within 4 s and is killed" in caplog.text


@pytest.mark.parametrize("busy", [False, True])
async def test_a_stop_waits_for_no_worker_that_hangs(serve: Open, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.5)
    async with serve(workers=2) as dispatcher:
        before = pids(dispatcher)
        with frozen(dispatcher):
            asks = [asyncio.ensure_future(_ask(dispatcher, line)) for line in LINES * busy]
            await until(lambda: len(dispatcher._pool.idle) == (0 if busy else 2))
            dispatcher.abandon()
            await asyncio.wait_for(dispatcher.stop(), 20)
            assert not any(map(_exists, before))
        for found in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(found, RequestError)


async def test_a_worker_that_hangs_while_it_opens_is_an_error(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_OPEN_SECONDS", 0.01)
    with pytest.raises(WorkerDiedError, match=r"did not open the models within 0\.01 s"):
        async with serve():
            pass


async def test_a_line_whose_worker_dies_after_its_deadline_is_not_tried_again(serve: Open, log: Log) -> None:
    async with serve(deadline=0.2) as dispatcher:
        (before,) = pids(dispatcher)
        with frozen(dispatcher):
            ask = asyncio.ensure_future(_ask(dispatcher, "ten"))
            await asyncio.sleep(0.3)
            os.kill(before, signal.SIGKILL)
            with pytest.raises(RequestError, match=r"died after 0\.2 s"):
                await ask
    assert log.lines == {"lost": 1}


async def test_a_replacement_that_finds_another_bundle_replaces_all(
    serve: Open, victim: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(victim, workers=2) as dispatcher:
        before = pids(dispatcher)
        make_bundle(victim, seed=1)
        os.kill(before[0], signal.SIGKILL)
        await until(lambda: dispatcher.workers == 2 and not {*before} & {*pids(dispatcher)})
        texts = {await _ask(dispatcher, LINES[0]) for _ in range(6)}
    assert texts == {Translator(victim, threads=1).translate(LINES[:1])[0].text}
    assert "have changed on disk" in caplog.text


async def test_stop_answers_all_that_is_there_and_ends_the_processes(serve: Open, log: Log) -> None:
    async with serve(workers=2) as dispatcher:
        workers = pids(dispatcher)
        with frozen(dispatcher):
            asks = [asyncio.ensure_future(_ask(dispatcher, line)) for line in LINES * 50]
            await until(lambda: not dispatcher._pool.idle)
            stopping = asyncio.ensure_future(dispatcher.stop())
            await asyncio.sleep(0)
            with pytest.raises(RequestError):
                await _ask(dispatcher, "ten")
        found = await asyncio.gather(*asks)
        await stopping
        assert not any(map(_exists, workers))

    assert all(found)
    assert log.lines == {"done": 200}


@pytest.mark.parametrize("bad", ["missing", "damaged", "single"])
async def test_start_refuses_a_bad_bundle(bad: str, log: Log, victim: Path, repo_root: Path) -> None:
    path = {"missing": victim / "nothing", "damaged": victim, "single": repo_root / "tests/golden/single"}[bad]
    (victim / "tgt.model").write_bytes(b"damaged")
    dispatcher = Dispatcher({"small": path}, Settings(workers=2), log)
    with pytest.raises(BundleError):
        await dispatcher.load()
    await dispatcher.stop()


SERVER = """
    import asyncio, sys, time
    from pathlib import Path
    from softsearch.extras.serve import workers
    from softsearch.extras.serve.settings import Settings
    from softsearch.extras.serve.dispatcher import Dispatcher
    from softsearch.extras.serve.monitoring import Metrics

    async def main():
        dispatcher = Dispatcher({"small": Path(sys.argv[1])}, Settings(workers=2), Metrics())
        await dispatcher.load()
        if sys.argv[2] == "busy":
            asks = [asyncio.ensure_future(dispatcher.translate("small", ["ten"])) for _ in range(2)]
            while dispatcher._pool.idle:
                await asyncio.sleep(0.01)
        print(*[worker.pid for worker in dispatcher._pool.workers], flush=True)
        if sys.argv[2] != "none":
            await asyncio.sleep(1000)
        raise SystemExit("without stop()")

    if __name__ == "__mp_main__":  # in the workers
        workers._run = lambda *_: time.sleep(1000)
    elif __name__ == "__main__":
        asyncio.run(main())
"""


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize(
    ("work", "end", "last_words"),
    [
        ("idle", "kill", ""),
        ("busy", "kill", ""),
        ("idle", "interrupt", "KeyboardInterrupt"),
        ("busy", "interrupt", "KeyboardInterrupt"),
        ("none", "exit", "without stop()"),
    ],
)
def test_no_worker_outlives_the_main_process(
    work: str, end: str, last_words: str, bundle_dir: Path, tmp_path: Path, popen: Callable[..., subprocess.Popen[str]]
) -> None:
    script = tmp_path / "server.py"
    script.write_text(textwrap.dedent(SERVER))
    command = [sys.executable, str(script), str(bundle_dir), work]
    process = popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    if end == "interrupt":
        for pid in (process.pid, *workers):  # as a terminal does
            with suppress(ProcessLookupError):  # a worker that has ended with the main process
                os.kill(pid, signal.SIGINT)
    elif end == "kill":
        process.kill()
    _, errors = process.communicate(timeout=60)
    asyncio.run(asyncio.wait_for(until(lambda: not any(map(alive, workers))), 60))
    assert (errors.splitlines() or [""])[-1] == last_words
    assert "leaked" not in errors
