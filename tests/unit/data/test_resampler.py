"""Fresh segmentations: a pure function of the seed and the draw, within the budget, the same text always."""

import os
import pickle
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from softsearch.data.resampler import ROOM, Resampler
from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer

LINES = ["one small red house", "two small houses", "three red cars and one small car", "ein kleines rotes Haus"] * 5
ROOT = Path(__file__).resolve().parents[3]
BOTH: tuple[Kind, ...] = ("bpe", "unigram")
Pair = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@cache
def tokenizers(kind: Kind) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    straight = train_tokenizer(LINES, kind=kind, vocab_size={"bpe": 70, "unigram": 36}[kind])
    return straight, SentencePieceTokenizer(straight.model, reverse=True)


def make(kind: Kind, seed: int = 1, tokens: int = 1000) -> Resampler:
    src, tgt = (SubwordSampler(tokenizer, kind, 0.3) for tokenizer in tokenizers(kind))
    return Resampler((src, tgt), tokens=tokens, seed=seed)


def pairs(kind: Kind) -> list[Pair]:
    src, tgt = tokenizers(kind)
    return [
        (np.array(src.encode(line), dtype=np.uint16), np.array(tgt.encode(other), dtype=np.uint16))
        for line, other in pairwise(LINES[:5])
    ]


def ids(found: list[Pair]) -> list[list[list[int]]]:
    return [[side.tolist() for side in pair] for pair in found]


def test_the_text_stays(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    for epoch in range(20):
        for before, after in zip(whole, resampler([4 * epoch + i for i in range(4)], whole), strict=True):
            for side, model in enumerate(tokenizers(kind)):
                assert model.decode(after[side].tolist()) == model.decode(before[side].tolist())
                assert after[side].dtype == before[side].dtype


def test_a_draw_depends_on_nothing_but_its_number_and_the_seed(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    together = ids(resampler([0, 1, 2, 3], whole))
    backwards = ids(make(kind)([3, 2, 1, 0], whole[::-1]))[::-1]
    copy = pickle.loads(pickle.dumps(resampler))
    alone = [ids(copy([i], whole[i : i + 1]))[0] for i in (2, 0, 3, 1)]
    assert together == backwards == [alone[i] for i in (1, 3, 0, 2)]


def test_epochs_seeds_and_sides_differ(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    epochs = [ids(resampler([4 * epoch + i for i in range(4)], whole)) for epoch in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert ids(make(kind, seed=2)([0, 1, 2, 3], whole)) != epochs[0]
    for side in (0, 1):
        assert [pair[side] for pair in epochs[0]] != [pair[side] for pair in epochs[1]]


def test_a_batch_stays_within_the_budget(kind: Kind) -> None:
    """The samples that fit are taken, and for the others the segmentation that the batch was cut by."""
    free = make(kind)
    whole = pairs(kind)
    fitting, kept = 0, 0
    width = max(len(side) + 1 for pair in whole for side in pair)
    for budget in (4 * width, int(4 * width * ROOM)):
        capped = make(kind, tokens=budget)
        for epoch in range(20):
            draws = [4 * epoch + i for i in range(4)]
            for one, other, before in zip(free(draws, whole), capped(draws, whole), whole, strict=True):
                for side in (0, 1):
                    fits = 4 * (len(one[side]) + 1) <= budget
                    assert other[side].tolist() == (one if fits else before)[side].tolist()
                    fitting, kept = fitting + fits, kept + (not fits)
    assert fitting
    assert kept


def test_other_processes_draw_the_same() -> None:
    """What is drawn may not depend on hashes, addresses or salts of the process: a resumed run is another one."""
    program = (
        "import tests.unit.data.test_resampler as t; print([t.ids(t.make(k)(range(4), t.pairs(k))) for k in t.BOTH])"
    )
    command = [sys.executable, "-c", program]
    found = {
        subprocess.run(
            command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{[ids(make(k)(range(4), pairs(k))) for k in BOTH]}\n".encode()}
