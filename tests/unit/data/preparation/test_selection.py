"""Repeated and unusual pairs, and pairs that others share, searched for a part of the hashes at a time."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.data.preparation import selection
from softsearch.data.preparation.selection import count_shared, mark_repeated, mark_unusual

CUTS = st.lists(st.integers(0, 60), max_size=3)  # between parts


def in_parts(array: NDArray[np.generic], cuts: Sequence[int]) -> list[NDArray[np.generic]]:
    return np.split(array, sorted(cuts))


@given(st.integers(0, 2**32), st.integers(1, 70), CUTS)
def test_unusual_lengths_as_gale_and_church_have_them(seed: int, at_once: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    src = rng.integers(1, 100, 60)
    pairs = np.stack([src, np.maximum(1, (1.2 * src + 2 * np.sqrt(src) * rng.standard_normal(60)).astype(int))], 1)
    before = rng.random(60) < 0.2
    dropped = before.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "HASH_CHUNK", at_once)
        mark_unusual(in_parts(pairs.astype(np.uint16), cuts), dropped, 1.5)
    left = [(int(s), int(t)) for (s, t), out in zip(pairs, before, strict=True) if not out]
    ratio = sum(t for _, t in left) / sum(s for s, _ in left)
    variance = sum((t - ratio * s) ** 2 / s for s, t in left) / len(left)
    assert [abs(t - ratio * s) / (variance * s) ** 0.5 > 1.5 for s, t in left] == dropped[~before].tolist()
    assert dropped[before].all()


def test_of_pairs_of_one_ratio_and_of_no_pairs_none_is_unusual() -> None:
    lengths = np.array([[n, 3 * n] for n in range(1, 50)], dtype=np.uint16)
    dropped = np.zeros(49, dtype=np.bool_)
    mark_unusual([lengths], dropped, 0.1)
    assert not dropped.any()
    mark_unusual([lengths[:0]], dropped[:0], 0.1)


HASHES = st.lists(st.integers(0, 20) | st.integers(2**64 - 5, 2**64 - 1), max_size=60)


@given(HASHES, st.integers(1, 70), CUTS)
def test_the_first_of_equal_ones_is_kept(values: list[int], at_once: int, cuts: list[int]) -> None:
    hashes, dropped = np.array(values, dtype=np.uint64), np.zeros(len(values), dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "HASH_CHUNK", at_once)
        mark_repeated(in_parts(hashes, cuts), dropped)
    assert dropped.tolist() == [value in values[:i] for i, value in enumerate(values)]


@given(HASHES, st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(1, 70), CUTS)
def test_shared_ones_are_counted_as_often_as_they_are_asked_for(
    values: list[int], others: list[int], at_once: int, cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "HASH_CHUNK", at_once)
        found = count_shared(in_parts(np.array(values, dtype=np.uint64), cuts), np.array(others, dtype=np.uint64))
    assert found == sum(other in values for other in others)
