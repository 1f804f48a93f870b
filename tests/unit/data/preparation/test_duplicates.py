"""Repetitions, found a part of the hashes at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.data.preparation import duplicates
from softsearch.data.preparation.duplicates import count_shared, mark_repeated

HASHES = st.lists(st.integers(0, 20) | st.integers(2**64 - 5, 2**64 - 1), max_size=60)


@given(HASHES, st.integers(1, 70))
def test_the_first_of_equal_ones_is_kept(values: list[int], at_once: int) -> None:
    hashes, dropped = np.array(values, dtype=np.uint64), np.zeros(len(values), dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "AT_ONCE", at_once)
        mark_repeated(hashes, dropped)
    assert dropped.tolist() == [value in values[:i] for i, value in enumerate(values)]


@given(HASHES, st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(1, 70))
def test_shared_ones_are_counted_as_often_as_they_are_asked_for(
    values: list[int], others: list[int], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "AT_ONCE", at_once)
        found = count_shared(np.array(values, dtype=np.uint64), np.array(others, dtype=np.uint64))
    assert found == sum(other in values for other in others)
