"""Cleaned pairs in files, and repetitions, searched for a part of the hashes at a time."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.data.preparation import clean as clean_module
from softsearch.data.preparation.clean import CleanChunk, CleanedCorpus, count_shared, mark_repeated, mark_unusual


def chunk(number: int, first: int, pairs: list[str]) -> CleanChunk:
    src, tgt = (b"".join(f"{side}{pair}\n".encode() for pair in pairs) for side in ("s", "t"))
    numbers = np.arange(first, first + len(pairs))
    hashes = np.array([hash(pair) % 2**64 for pair in pairs], dtype=np.uint64)
    lengths = np.array([[len(pair), 2 * len(pair)] for pair in pairs], dtype=np.uint16)
    return CleanChunk(("train", number), src, tgt, numbers, hashes, lengths, np.zeros((0, 2), np.uint64), Counter(), [])


@pytest.fixture(params=[2, 4096], ids=["small-chunks", "one-chunk"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CleanedCorpus:
    monkeypatch.setattr(clean_module, "_CHUNK_PAIRS", request.param)
    with ExitStack() as stack:
        made = CleanedCorpus(tmp_path / "train", 2, stack)
        made.append(chunk(0, 1, ["a", "b", "a"]))
        made.append(chunk(0, 5, ["c"]))
        made.append(chunk(1, 1, ["d", "b", "e"]))
    return made


def contents(corpus: CleanedCorpus) -> tuple[list[str], list[str], list[int]]:
    sides: tuple[list[str], list[str]] = [], []
    lines: list[int] = []
    for src, tgt, numbers in corpus.chunks():
        for side, part in zip(sides, (src, tgt), strict=True):
            side.extend(line.decode().removesuffix("\n") for line in part)
        lines.extend(numbers.tolist())
    return *sides, lines


def test_everything_comes_back(corpus: CleanedCorpus) -> None:
    assert contents(corpus) == (
        ["sa", "sb", "sa", "sc", "sd", "sb", "se"],
        ["ta", "tb", "ta", "tc", "td", "tb", "te"],
        [1, 2, 3, 5, 1, 2, 3],
    )
    assert corpus.sizes() == [4, 3]


def test_repetitions_are_left_out_within_and_between_corpora(corpus: CleanedCorpus) -> None:
    corpus.drop_repeated()
    assert contents(corpus) == (["sa", "sb", "sc", "sd", "se"], ["ta", "tb", "tc", "td", "te"], [1, 2, 5, 1, 3])
    assert corpus.sizes() == [3, 2]
    corpus.drop_unusual(1)
    assert [dict(counts) for counts in corpus.counts] == [{"repeated": 1, "unusual": 0}] * 2
    assert list(corpus.sample(1, most=9)) == ["ta", "tb", "tc", "td", "te"]


@pytest.mark.parametrize("most", range(1, 9))
def test_a_sample_is_spread_evenly(corpus: CleanedCorpus, most: int) -> None:
    everything = contents(corpus)[0]
    sample = list(corpus.sample(0, most))
    assert len(sample) == min(most, 7)
    rest = iter(everything)
    assert all(line in rest for line in sample)  # in order
    assert sample == everything or len(set(sample) & set(everything[:4])) == pytest.approx(most * 4 / 7, abs=1.5)


@given(st.integers(0, 2**32), st.integers(1, 70))
def test_unusual_lengths_as_gale_and_church_have_them(seed: int, at_once: int) -> None:
    rng = np.random.default_rng(seed)
    src = rng.integers(1, 100, 60)
    pairs = np.stack([src, np.maximum(1, (1.2 * src + 2 * np.sqrt(src) * rng.standard_normal(60)).astype(int))], 1)
    before = rng.random(60) < 0.2
    dropped = before.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_module, "HASH_CHUNK", at_once)
        mark_unusual(pairs.astype(np.uint16), dropped, 1.5)
    left = [(int(s), int(t)) for (s, t), out in zip(pairs, before, strict=True) if not out]
    ratio = sum(t for _, t in left) / sum(s for s, _ in left)
    variance = sum((t - ratio * s) ** 2 / s for s, t in left) / len(left)
    assert [abs(t - ratio * s) / (variance * s) ** 0.5 > 1.5 for s, t in left] == dropped[~before].tolist()
    assert dropped[before].all()


def test_of_pairs_of_one_ratio_and_of_no_pairs_none_is_unusual() -> None:
    lengths = np.array([[n, 3 * n] for n in range(1, 50)], dtype=np.uint16)
    dropped = np.zeros(49, dtype=np.bool_)
    mark_unusual(lengths, dropped, 0.1)
    assert not dropped.any()
    mark_unusual(lengths[:0], dropped[:0], 0.1)


HASHES = st.lists(st.integers(0, 20) | st.integers(2**64 - 5, 2**64 - 1), max_size=60)


@given(HASHES, st.integers(1, 70))
def test_the_first_of_equal_ones_is_kept(values: list[int], at_once: int) -> None:
    hashes, dropped = np.array(values, dtype=np.uint64), np.zeros(len(values), dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_module, "HASH_CHUNK", at_once)
        mark_repeated(hashes, dropped)
    assert dropped.tolist() == [value in values[:i] for i, value in enumerate(values)]


@given(HASHES, st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(1, 70))
def test_shared_ones_are_counted_as_often_as_they_are_asked_for(
    values: list[int], others: list[int], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_module, "HASH_CHUNK", at_once)
        found = count_shared(np.array(values, dtype=np.uint64), np.array(others, dtype=np.uint64))
    assert found == sum(other in values for other in others)
