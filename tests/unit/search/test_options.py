"""The norms and GNMT's coverage penalty by hand, and the promise that early stopping rests on."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.options import LengthNorm, SearchOptions, coverage, length_norm
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import EOS


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


NO_NUMBER = (float("nan"), float("inf"), -1.0, "1", True)
REFUSED: dict[type, dict[str, tuple[tuple[object, ...], str]]] = {  # of each option the values, and what is expected
    BeamSearch: {
        "beam": ((0, 1001, 2.0, True, None), "a whole number of at least 1 and at most 1000"),
        "n_best": ((0, "1"), "a whole number of at least 1"),
        "length_penalty": ((*NO_NUMBER, 11), "a number of at least 0 and at most 10"),
        "length_norm": (("average", 3), "one of 'power', 'gnmt'"),
        "coverage_penalty": (NO_NUMBER, "a number of at least 0"),
        "exact_stop": ((1, "yes"), "true or false"),
        "groups": ((0,), "a whole number of at least 1"),
        "diversity": (NO_NUMBER, "a number of at least 0"),
        "max_length_factor": ((*NO_NUMBER, 1e30), "a number of at least 0"),
        "max_length_offset": ((0, 2.5), "a whole number of at least 1"),
        "min_length_factor": (NO_NUMBER, "a number of at least 0"),
        "min_length_offset": ((-1,), "a whole number of at least 0"),
        "no_repeat_ngram": ((-1,), "a whole number of at least 0"),
        "banned": ((["the"], [-1], 4), "a list, each a whole number of at least 0"),
    },
    Sampling: {
        "n_best": ((0,), "a whole number of at least 1"),
        "temperature": ((0.0, 1e-320, float("nan")), "a number of at least 1e-09"),
        "top_k": ((0, 1.5), "a whole number of at least 1"),
        "top_p": ((0.0, 1.5), "a number of more than 0 and at most 1"),
        "seed": ((-1, 2**32), "a whole number of at least 0"),
    },
    ExactSearch: {"max_nodes": ((0,), "a whole number of at least 1"), "beam": ((0,), "a whole number of at least 1")},
}


@pytest.mark.parametrize("strategy", REFUSED)
def test_values_out_of_range_are_refused(strategy: type) -> None:
    for name, (values, expected) in REFUSED[strategy].items():
        for value in values:
            with pytest.raises(ConfigError) as refused:
                strategy(**{name: value})
            assert f"search.{name} is {'missing' if value is None else repr(value)}" in str(refused.value)
            if not (isinstance(value, float) and abs(value) == np.inf):
                assert f"expected {expected}" in str(refused.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"beam": 2, "n_best": 3}, r"search.n_best is 3, expected at most beam \(2\)"),
        ({"beam": 5, "groups": 2}, r"search.groups is 2, expected a divisor of beam \(5\)"),
        ({"banned": [4, EOS]}, r"search.banned is \[4, 3\], expected no EOS \(3\)"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BeamSearch(**bad)
