"""Dispatcher: the results of Translator, in common batches; each request fails, waits and ends by itself."""

import asyncio
import gc
import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.errors import ConfigError, InputError, SoftsearchError
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.line_queue import Line, Request, RequestError
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.texts import after, before
from softsearch.runtime.stages.chosen import Stages
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from tests.extras.serve.dispatchers import Log, Open, frozen, pids, until
from tests.extras.serve.worker_faults import EXPLOSIVE
from tests.support.bundles import SRC_LINES, make_bundle

LINES = [*dict.fromkeys(SRC_LINES), "two cats", "ten", "", "one, two, three, four", "a b c d e f g h i j k l m n o p"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"search": "greedy"},
    {"beam": 2},
    {"beam": 4, "n_best": 3, "alignments": True},
    {"max_length": 3},
    {"min_length": "5 + 1 * source", "no_repeat_ngram": 2},
    {"length_penalty": 0.3},
    {"search": "sample", "seed": 7, "n_best": 2},
]
WANTED: list[dict[str, Any]] = [  # what translations must contain
    {},
    {},
    {"glossary": {"two": "drei", "cats": "eins|zwei"}},
    {"glossary": {"two": "vier"}, "glossary_bonus": 3.0},
    {"glossary": {"ten": "\U0001f600"}, "keep": ["three"]},
]


def stages(**options: Any) -> Stages:
    return Stages().given(options)[0]


def same(found: Translation, expected: Translation) -> bool:
    assert len(found.n_best) == len(expected.n_best)
    for one, other in zip(found.n_best, expected.n_best, strict=True):
        assert (one.text, one.src_pieces, one.tgt_pieces) == (other.text, other.src_pieces, other.tgt_pieces)
        assert (one.truncated, one.missing_terms) == (other.truncated, other.missing_terms)
        assert (one.score, one.log_prob) == pytest.approx((other.score, other.log_prob), rel=1e-3, abs=1e-4)
        assert (one.alignments is None) == (other.alignments is None)
        if one.alignments is not None:
            assert one.alignments == pytest.approx(other.alignments, rel=1e-3, abs=1e-4)
    return True


async def test_results_are_those_of_translator_whatever_else_is_asked_at_the_same_time(
    serve: Open, log: Log, bundle_dir: Path
) -> None:
    rng, translator = random.Random(1), Translator(bundle_dir, threads=1)
    requests = [
        (rng.choices(LINES, k=rng.choice([1, 1, 1, 2, 6])), rng.choice(OPTIONS), rng.random() < 0.2) for _ in range(150)
    ]
    wanted = {index: rng.choice(WANTED) for index, (_, o, _) in enumerate(requests) if o.get("search") != "sample"}
    async with serve(workers=2) as dispatcher:

        async def ask(index: int, lines: list[str], options: dict[str, Any], is_score: bool) -> None:
            await asyncio.sleep(rng.random() / 5)
            if is_score:
                src = [line[:20] or "ten" for line in lines]
                scores = await dispatcher.score("small", src, LINES[: len(src)])
                for one, other in zip(scores, translator.score(src, LINES[: len(src)]), strict=True):
                    assert one.token_log_probs == pytest.approx(other.token_log_probs, rel=1e-3, abs=1e-4)
                return
            terms = wanted.get(index, {})
            expected = translator.translate(lines, **options, **terms)
            found = await dispatcher.translate("small", lines, stages(**terms), **options)
            assert all(same(*pair) for pair in zip(found, expected, strict=True))

        await asyncio.gather(*(ask(index, *request) for index, request in enumerate(requests)))
    assert log.lines == {"done": sum(len(lines) for lines, *_ in requests)}
    assert sum(log.batches) == log.lines["done"]


async def test_lines_of_many_requests_share_a_batch(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        await asyncio.gather(*(dispatcher.translate("small", ["one two three"]) for _ in range(40)))
        with frozen(dispatcher):
            asks = [asyncio.ensure_future(dispatcher.translate("small", ["ten"]))]
            await until(lambda: not dispatcher._pool.idle)
            for options in ({}, {"beam": 2}):
                asks += [
                    asyncio.ensure_future(dispatcher.translate("small", ["two cats"], **options)) for _ in range(9)
                ]
            await until(lambda: dispatcher.waiting == 18)
        await asyncio.gather(*asks)
    assert log.batches == [40, 1, 9, 9]
    assert all(tokens <= 2560 // 2 for tokens in log.tokens)
    assert len(log.waited) == 59
    assert min(log.waited) >= 0


async def test_lines_with_terms_have_batches_of_their_own(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        await dispatcher.translate("small", ["two cats", "ten", "two", "one"], stages(glossary={"two": "drei"}))
    assert sorted(log.batches) == [1, 1, 2]


async def test_a_request_may_ask_for_the_attention_of_a_head(serve: Open, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "headed", heads=2).path
    async with serve(bundle) as dispatcher:
        facts = dispatcher.models["small"]
        asks = (dispatcher.translate("small", ["two cats"], stages(head=name), n_best=2) for name in facts.heads)
        for name, (found,) in zip(facts.heads, await asyncio.gather(*asks), strict=True):
            (wanted,) = Translator(bundle, threads=1).translate(["two cats"], n_best=2, head=name)
            for one, other in zip(found.n_best, wanted.n_best, strict=True):
                np.testing.assert_allclose(one.alignments, other.alignments, atol=1e-6)
        with pytest.raises(ConfigError, match="head is 'all', but model small has one of: mean of all layers and"):
            await dispatcher.translate("small", ["ten"], stages(head="all"))


async def test_idle_workers_share_a_request(serve: Open, log: Log) -> None:
    async with serve(workers=2) as dispatcher:
        await dispatcher.translate("small", ["one two three"] * 20)
    assert log.batches == [10, 10]


async def test_a_stream_of_requests_does_not_hold_up_the_first(serve: Open) -> None:
    async with serve(queue=500) as dispatcher:
        asks = []
        while dispatcher._pool.idle:  # a request in every turn of the event loop
            asks.append(asyncio.ensure_future(dispatcher.translate("small", ["ten"])))
            await asyncio.sleep(0)
        assert all(found.text for (found,) in await asyncio.gather(*asks))


async def test_prefixes_begin_translations(serve: Open) -> None:
    async with serve() as dispatcher:
        found = await dispatcher.translate("small", ["one two", "ten"], prefixes=["eins", ""])
    assert found[0].text.startswith("eins")


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"lines": ["ten", "a \ud800"]}, InputError, "line 2: "),
        ({"lines": ["ten", "x " * 900]}, InputError, "line 2 has 1800 characters"),
        ({"lines": ["ten", "x " * 1000]}, RequestError, "line 2 has 2000 characters"),  # a worker encodes it
        ({"lines": ["ten", "ten"], "prefixes": ["", "Ж"]}, InputError, "line 2: the model's vocabulary lacks"),
        ({"lines": ["ten", EXPLOSIVE]}, RequestError, "line 2 failed"),
        ({"lines": ["ten"], "beam": 0}, ConfigError, "search.beam is 0"),
        ({"lines": ["ten"], "beam": True}, ConfigError, "beam is True"),
        ({"lines": ["ten"], "beams": 4}, ConfigError, "did you mean 'beam'"),
        ({"lines": ["ten"], "search": "rerank"}, ConfigError, "rescore"),
        ({"lines": ["ten"] * 101}, InputError, "at most 100; split it"),
    ],
)
async def test_a_bad_request_fails_alone(
    serve: Open, caplog: pytest.LogCaptureFixture, bad: dict[str, Any], error: type[SoftsearchError], message: str
) -> None:
    arguments = {"model": "small"} | bad
    good = {"prefixes": [""] * 3} if "prefixes" in bad else {}
    async with serve(queue=100) as dispatcher:
        (alone,) = await asyncio.gather(dispatcher.translate(**arguments), return_exceptions=True)
        asks = [
            dispatcher.translate("small", ["one two", "", "ten"], **good),
            dispatcher.translate(**arguments),
            dispatcher.translate("small", ["ten", "one two", "six"], **good),
        ]
        before, failed, after = await asyncio.gather(*asks, return_exceptions=True)
    assert [len(before), len(after)] == [3, 3]
    for found in (alone, failed):
        assert type(found) is error
        assert message in str(found)
    assert ("it exploded" in caplog.text) == ("line 2 failed" in message)


async def test_long_requests_are_split_and_encoded_by_a_worker(
    serve: Open, log: Log, bundle_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, lines = "Two cats. " * 230, LINES * 30
    (whole,) = Translator(bundle_dir, threads=1).translate([text], paragraphs=True)
    alone = dict(zip(LINES, Translator(bundle_dir, threads=1).translate(LINES), strict=True))
    async with serve(workers=2) as dispatcher:
        encoder = dispatcher.model("small").encoder
        for method in ("parts", "pairs", "prefix", "tag"):  # of this process
            monkeypatch.setattr(encoder, method, None)
        chosen = stages(paragraphs=True)
        split = await before(dispatcher, "small", chosen, [text])
        assert len(split.lines.texts) == 230
        found = await dispatcher.translate("small", split.lines.texts, chosen)
        (joined,) = await after(dispatcher, "small", chosen, split.kept, found)
        assert joined.text == whole.text
        found = await dispatcher.translate("small", lines, prefixes=[""] * len(lines))
        assert [each.text for each in found] == [alone[line].text for line in lines]
        scores = await dispatcher.score("small", ["ten", "six"] * 300, ["zehn", "sechs"] * 300)
        assert scores[0].log_prob == pytest.approx(scores[598].log_prob, abs=1e-4)
    assert log.lines == {"done": 230 + len(lines) + 600}
    assert sum(log.batches) == 230 + len(lines) + 600


@pytest.mark.parametrize("end", ["deadline", "death", "leave"])
async def test_a_preparation_ends_as_a_batch_does(serve: Open, log: Log, end: str) -> None:
    text = "Two cats. " * 230
    async with serve(deadline=0.5 if end == "deadline" else 60) as dispatcher:
        with frozen(dispatcher):
            asking = asyncio.ensure_future(before(dispatcher, "small", stages(paragraphs=True), [text]))
            await until(lambda: not dispatcher._pool.idle)
            if end == "deadline":
                with pytest.raises(RequestError, match=r"not split and encoded within 0\.5 s"):
                    await asking
            elif end == "death":
                os.kill(*pids(dispatcher), signal.SIGKILL)
            else:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        if end == "death":
            assert len((await asking).lines.texts) == 230
        assert (await dispatcher.translate("small", ["six"]))[0].text
    assert log.lines == {"done": 1}


async def test_a_bad_pair_is_named(serve: Open) -> None:
    async with serve() as dispatcher:
        with pytest.raises(InputError, match="target:2 has "):
            await dispatcher.score("small", ["one", "two", "six"], ["eins", "ein " * 300, "sechs"])
        assert await dispatcher.score("small", [], []) == []
        assert await dispatcher.score("small", ["one"], [" "]) == [(0.0, ())]


async def test_a_full_queue_refuses_whole_requests_and_says_when_to_come_again(serve: Open, log: Log) -> None:
    async with serve(queue=10) as dispatcher:
        await dispatcher.translate("small", LINES[:5])  # a rate is known
        with frozen(dispatcher):
            asks = [asyncio.ensure_future(dispatcher.translate("small", ["ten"]))]
            await until(lambda: not dispatcher._pool.idle)
            asks += [asyncio.ensure_future(dispatcher.translate("small", ["one two"] * 4)) for _ in range(2)]
            await until(lambda: dispatcher.waiting == 8)
            with pytest.raises(RequestError, match="8 lines are waiting, and 3 more") as caught:
                await dispatcher.translate("small", ["six"] * 3)
            assert caught.value.status == 503
            assert 0 < int(caught.value.headers["Retry-After"]) < 60
            asks.append(asyncio.ensure_future(dispatcher.translate("small", ["six"] * 2)))
            await until(lambda: dispatcher.waiting == 10)
        await asyncio.gather(*asks)
    assert log.lines == {"done": 5 + 1 + 8 + 2}


async def test_lines_that_have_not_begun_at_the_deadline_are_dropped(serve: Open, log: Log) -> None:
    async with serve(deadline=0.3) as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(dispatcher.translate("small", ["one two"]))
            await until(lambda: not dispatcher._pool.idle)
            with pytest.raises(RequestError, match=r"2 of 2 lines had not begun after 0\.3 s"):
                await dispatcher.translate("small", ["ten", "six"])
            assert dispatcher.waiting == 0
        assert (await begun)[0].text  # although it took longer
    assert log.lines == {"done": 1, "dropped": 2}
    assert log.batches == [1]


async def test_a_client_that_leaves_frees_its_lines(serve: Open, log: Log) -> None:
    async with serve() as dispatcher:
        with frozen(dispatcher):
            begun = asyncio.ensure_future(dispatcher.translate("small", ["one two"]))
            await until(lambda: not dispatcher._pool.idle)
            waits = asyncio.ensure_future(dispatcher.translate("small", ["ten"] * 5))
            stays = asyncio.ensure_future(dispatcher.translate("small", ["six"]))
            await until(lambda: dispatcher.waiting == 6)
            for ask in (begun, waits):
                ask.cancel()
            await asyncio.gather(begun, waits, return_exceptions=True)
            assert dispatcher.waiting == 1
        assert (await stays)[0].text
    assert log.batches == [1, 1]
    assert log.lines == {"done": 2, "dropped": 5}


async def test_any_schedule_of_clients_answers_each_line_once(serve: Open, log: Log) -> None:
    rng = random.Random(3)
    async with serve(workers=2, queue=60, delay=0.002) as dispatcher:

        async def client() -> list[int]:
            counts = [0, 0, 0]  # answered, refused, given up
            for _ in range(12):
                lines = rng.choices(LINES, k=rng.randint(1, 9))
                ask = asyncio.ensure_future(dispatcher.translate("small", lines, **rng.choice(OPTIONS)))
                if rng.random() < 0.2:
                    await asyncio.sleep(rng.random() / 50)
                    ask.cancel()
                try:
                    found = await ask
                    assert all("".join(t.src_pieces[:1]) or not line for t, line in zip(found, lines, strict=True))
                    counts[0] += len(lines)
                except RequestError:
                    counts[1] += len(lines)
                except asyncio.CancelledError:
                    counts[2] += len(lines)
            return counts

        counts = await asyncio.gather(*(client() for _ in range(20)))
        assert dispatcher.waiting == 0
    answered, refused, given_up = (sum(column) for column in zip(*counts, strict=True))
    assert min(answered, refused, given_up) > 0
    assert answered <= log.lines["done"] <= answered + given_up
    assert log.lines["done"] + log.lines.get("dropped", 0) <= answered + given_up
    assert sum(log.batches) == log.lines["done"]


async def test_a_request_that_has_ended_leaves_no_cycles_that_hold_its_results(serve: Open) -> None:
    gc.collect()
    gc.disable()
    try:
        async with serve(deadline=2, batch_timeout=4) as dispatcher:
            await dispatcher.translate("small", LINES, n_best=2)
            await asyncio.gather(dispatcher.translate("small", ["ten", EXPLOSIVE]), return_exceptions=True)
            with frozen(dispatcher):
                asks = (dispatcher.translate("small", LINES) for _ in range(3))
                await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 20)
            await until(lambda: not dispatcher._running)
            assert not [each for each in gc.get_objects() if type(each) in (Line, Request)]
    finally:
        gc.enable()


async def test_requests_before_the_start_and_after_the_stop_are_refused(bundle_dir: Path, log: Log) -> None:
    dispatcher = Dispatcher({"small": bundle_dir}, Settings(workers=1), log)
    with pytest.raises(RequestError):
        await dispatcher.translate("small", ["ten"])
    await dispatcher.load()
    assert dispatcher.ready
    assert dispatcher.workers == 1
    await dispatcher.stop()
    assert not dispatcher.ready
    assert dispatcher.workers == 0
    with pytest.raises(RequestError):
        await dispatcher.translate("small", ["ten"])
