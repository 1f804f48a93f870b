"""Reloads: every worker is exchanged or none, and no line is lost or answered by two bundles."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from softsearch.errors import BundleError
from softsearch.extras.serve.line_queue import Request
from softsearch.extras.serve.models import ServedGlossary, encode_lines
from softsearch.extras.serve.workers import WorkerDiedError
from softsearch.runtime.stages.chosen import Stages
from softsearch.runtime.stages.terms import TermStage
from softsearch.runtime.translator import Translator
from tests.extras.serve.dispatchers import LINES, Log, Open, exists, frozen, pids, text_of, until
from tests.extras.serve.worker_faults import ONE_OPENS
from tests.support.bundles import make_bundle


async def test_reload_under_load_loses_no_request_and_ends_with_the_new_bundle(
    serve: Open, log: Log, victim: Path
) -> None:
    old = [found.text for found in Translator(victim, threads=1).translate(LINES)]
    async with serve(victim, workers=2) as dispatcher:
        before, facts = pids(dispatcher), dispatcher.models["small"]
        assert await asyncio.gather(*(text_of(dispatcher, line) for line in LINES)) == old
        make_bundle(victim, seed=1)
        done = asyncio.Event()

        async def client() -> set[str]:
            seen = set()
            while not done.is_set():
                seen.add(await text_of(dispatcher, LINES[0]))
            return seen

        clients = [asyncio.ensure_future(client()) for _ in range(8)]
        await dispatcher.load()
        done.set()
        seen = set.union(*await asyncio.gather(*clients))
        assert not {*before} & {*pids(dispatcher)}
        assert dispatcher.workers == 2
        assert dispatcher.models["small"].sha256 != facts.sha256
        await until(lambda: not any(map(exists, before)))
        new = [await text_of(dispatcher, line) for line in LINES]
        assert seen <= {old[0], new[0]}
        assert log.lines == {"done": sum(log.batches)}
    assert new == [found.text for found in Translator(victim, threads=1).translate(LINES)] != old
    assert log.deaths == 0


async def test_lines_that_wait_at_a_reload_are_encoded_as_the_new_bundle_reads_them(serve: Open, victim: Path) -> None:
    async with serve(victim) as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(text_of(dispatcher, "ten"))
            await until(lambda: not dispatcher._pool.idle)
            waiting = [asyncio.ensure_future(text_of(dispatcher, line)) for line in LINES]
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
        before, text = pids(dispatcher), await text_of(dispatcher, "ten")
        for name, content in (("src.model", b"damaged"), ("encoder.onnx", b"damaged")):
            (victim / name).write_bytes(content)
            with pytest.raises(BundleError, match="copy or export the bundle again"):
                await dispatcher.load()
        assert pids(dispatcher) == before
        assert dispatcher.ready
        assert await text_of(dispatcher, "ten") == text


async def test_a_bundle_that_only_the_worker_finds_bad_leaves_the_old_one(serve: Open, victim: Path) -> None:
    async with serve(victim) as dispatcher:
        before = pids(dispatcher)
        make_bundle(victim, graphs={name: {"inputs": [], "outputs": []} for name in ("encoder", "decoder_step")})
        with pytest.raises(BundleError, match="export the bundle again"):
            await dispatcher.load()
        assert pids(dispatcher) == before
        assert await text_of(dispatcher, "ten")


async def test_a_reload_of_which_one_worker_dies_answers_nothing_with_the_new_bundle(
    serve: Open, log: Log, victim: Path
) -> None:
    async with serve(victim, workers=2) as dispatcher:
        before, facts, old = pids(dispatcher), dispatcher.models, await text_of(dispatcher, LINES[0])
        make_bundle(victim, seed=1)
        (victim.parent / ONE_OPENS).mkdir()
        (victim.parent / ONE_OPENS / "token").touch()
        reload = asyncio.ensure_future(dispatcher.load())
        seen = set()
        while not reload.done():
            seen.add(await text_of(dispatcher, LINES[0]))
        with pytest.raises(WorkerDiedError, match="exit code 9"):
            await reload
        seen |= {*await asyncio.gather(*(text_of(dispatcher, LINES[0]) for _ in range(50)))}
        assert (pids(dispatcher), dispatcher.models, seen) == (before, facts, {old})
    assert log.deaths == 0


async def test_a_replacement_that_finds_another_bundle_replaces_all(
    serve: Open, victim: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(victim, workers=2) as dispatcher:
        before = pids(dispatcher)
        make_bundle(victim, seed=1)
        os.kill(before[0], signal.SIGKILL)
        await until(lambda: dispatcher.workers == 2 and not {*before} & {*pids(dispatcher)})
        texts = {await text_of(dispatcher, LINES[0]) for _ in range(6)}
    assert texts == {Translator(victim, threads=1).translate(LINES[:1])[0].text}
    assert "have changed on disk" in caplog.text
