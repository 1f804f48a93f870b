"""The norms and GNMT's coverage penalty by hand, and the promise that early stopping rests on."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.search.options import LengthNorm, SearchOptions, coverage, length_norm


def test_norms_by_hand() -> None:
    assert length_norm(7, 0.0, "power") == length_norm(7, 0.0, "gnmt") == 1.0
    assert length_norm(7, 1.0, "power") == 7.0
    assert length_norm(7, 1.0, "gnmt") == 2.0
    assert length_norm(1, 0.6, "gnmt") == 1.0
    assert length_norm(9, 0.5, "power") == 3.0


def test_coverage_counts_what_was_looked_at_too_little() -> None:
    assert coverage(np.array([1.0, 2.5])) == 0.0
    assert coverage(np.array([0.5, 1.5, 0.25])) == pytest.approx(np.log(0.5) + np.log(0.25))
    assert coverage(np.array([1e-5])) > coverage(np.array([0.0])) > -100.0


def test_a_score_has_both() -> None:
    options = SearchOptions(length_penalty=1.0, length_norm="gnmt", coverage_penalty=0.2)
    attended = np.array([0.5, 1.0])
    assert options.score(-3.0, 7, attended) == pytest.approx(-1.5 + 0.2 * np.log(0.5))
    assert options.score(-3.0, 7) == -1.5


@given(
    options=st.builds(
        SearchOptions,
        length_penalty=st.floats(0, 3),
        length_norm=st.sampled_from(get_args(LengthNorm)),
        coverage_penalty=st.floats(0, 2),
    ),
    log_prob=st.floats(-50, 0),
    falls=st.floats(0, 5),
    lengths=st.lists(st.integers(1, 60), min_size=2, max_size=2).map(sorted),
    attended=st.lists(st.floats(0, 3), min_size=1, max_size=4),
)
def test_nothing_that_ends_later_scores_above_the_bound(
    options: SearchOptions, log_prob: float, falls: float, lengths: list[int], attended: list[float]
) -> None:
    length, limit = lengths
    bound = float(options.bound(np.array([log_prob]), np.array([limit]))[0])
    rounding = 1e-12 * abs(bound)  # Python and NumPy do not round powers alike
    assert options.score(log_prob - falls, length, np.array(attended)) <= bound + rounding
