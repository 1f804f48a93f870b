"""Worker processes: replaced when they die, exchanged at a reload, gone after the end."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

from softsearch.errors import BundleError
from softsearch.extras.serve import pool, workers
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.models import Model
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.workers import WorkerDiedError
from softsearch.runtime.translator import Translator
from tests.extras.serve.dispatchers import LINES, Log, Open, exists, frozen, pids, text_of, until
from tests.extras.serve.worker_faults import DEADLY
from tests.support.serving import alive


@pytest.mark.parametrize("times", [1, 3])
async def test_a_killed_worker_is_replaced_and_no_line_is_lost(
    serve: Open, log: Log, bundle_dir: Path, caplog: pytest.LogCaptureFixture, times: int
) -> None:
    expected = [found.text for found in Translator(bundle_dir, threads=1).translate(LINES)]
    async with serve(workers=2) as dispatcher:
        for _ in range(times):
            before = pids(dispatcher)
            with frozen(dispatcher):
                asks = [asyncio.ensure_future(text_of(dispatcher, line)) for line in LINES * 5]
                await until(lambda: not dispatcher._pool.idle)
                os.kill(before[0], signal.SIGKILL)
            assert await asyncio.gather(*asks) == expected * 5
            await until(lambda: dispatcher.workers == 2)
            assert before[1] in pids(dispatcher)
            assert before[0] not in pids(dispatcher)
            assert not exists(before[0])
    assert log.deaths == times
    assert log.lines == {"done": 20 * times}
    assert "exit code -9" in caplog.text


async def test_an_idle_worker_that_dies_is_replaced(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        (before,) = pids(dispatcher)
        os.kill(before, signal.SIGKILL)
        await until(lambda: log.deaths)
        assert not dispatcher.ready
        assert await text_of(dispatcher, "ten")  # waits for the new one
        assert dispatcher.ready
        assert pids(dispatcher) != [before]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)])
async def test_workers_ignore_the_signals_that_a_terminal_or_systemd_sends_to_all(
    serve: Open, log: Log, number: signal.Signals
) -> None:
    async with serve() as dispatcher:
        (before,) = pids(dispatcher)
        os.kill(before, number)
        assert await text_of(dispatcher, "ten")
        assert pids(dispatcher) == [before]
    assert log.deaths == 0


async def test_a_request_that_kills_two_workers_is_given_up_and_the_others_go_on(serve: Open, log: Log) -> None:
    """Fault: a request kills its workers. Effect: given up after two; other requests go on."""
    async with serve() as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(text_of(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            asks = [asyncio.ensure_future(text_of(dispatcher, line)) for line in [*LINES, DEADLY, *LINES]]
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
            ask = asyncio.ensure_future(text_of(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            ask.cancel()
            await asyncio.gather(ask, return_exceptions=True)
            os.kill(before, signal.SIGKILL)
        assert await text_of(dispatcher, "two cats")
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
            ask = asyncio.ensure_future(text_of(dispatcher, "ten"))  # cannot be sent, which ends the worker
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
            ask = asyncio.ensure_future(text_of(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            os.kill(before, signal.SIGKILL)
        await until(lambda: caplog.text.count("cannot be replaced, next attempt") >= 2)
        assert not dispatcher.ready
        with pytest.raises(RequestError):  # not for ever, although it had begun once
            await ask
        away.rename(victim)
        await until(lambda: dispatcher.ready)
        assert await text_of(dispatcher, "ten")
    assert "expected the folder of an exported bundle" in caplog.text


async def test_a_worker_that_hangs_in_a_batch_is_replaced(
    serve: Open, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(batch_timeout=4.0) as dispatcher:
        (before,) = pids(dispatcher)
        with frozen(dispatcher):
            ask = asyncio.ensure_future(
                text_of(dispatcher, f"one{' ' * 1_000_000}two")
            )  # more than a pipe takes at once
            await until(lambda: not dispatcher._pool.idle)
            with pytest.raises(RequestError, match="a batch took more than 4 s"):
                await ask
        assert await text_of(dispatcher, "ten")  # by the new one
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
            asks = [asyncio.ensure_future(text_of(dispatcher, line)) for line in LINES * busy]
            await until(lambda: len(dispatcher._pool.idle) == (0 if busy else 2))
            dispatcher.abandon()
            await asyncio.wait_for(dispatcher.stop(), 20)
            assert not any(map(exists, before))
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
            ask = asyncio.ensure_future(text_of(dispatcher, "ten"))
            await asyncio.sleep(0.3)
            os.kill(before, signal.SIGKILL)
            with pytest.raises(RequestError, match=r"died after 0\.2 s"):
                await ask
    assert log.lines == {"lost": 1}


async def test_stop_answers_all_that_is_there_and_ends_the_processes(serve: Open, log: Log) -> None:
    async with serve(workers=2) as dispatcher:
        workers = pids(dispatcher)
        with frozen(dispatcher):
            asks = [asyncio.ensure_future(text_of(dispatcher, line)) for line in LINES * 50]
            await until(lambda: not dispatcher._pool.idle)
            stopping = asyncio.ensure_future(dispatcher.stop())
            await asyncio.sleep(0)
            with pytest.raises(RequestError):
                await text_of(dispatcher, "ten")
        found = await asyncio.gather(*asks)
        await stopping
        assert not any(map(exists, workers))

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
