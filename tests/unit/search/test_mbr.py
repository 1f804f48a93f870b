"""Minimum Bayes risk decoding against a double loop over everything that was found, each time it was found."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Hypothesis, SearchStrategy
from softsearch.search.mbr import MinimumBayesRisk, Tokens, reference_shares
from softsearch.search.sampling import Sampling
from tests.support.tables import TableModel
from tests.unit.search.test_beam import SOURCES

SAMPLES = Sampling(n_best=12, seed=3, max_length_factor=1, max_length_offset=3)
LIST = BeamSearch(beam=8, n_best=8, max_length_factor=1, max_length_offset=3)


def overlap(candidate: Tokens, reference: Tokens) -> float:
    """An utility that is not symmetric: the share of the reference's positions where the candidate is the same."""
    return sum(a == b for a, b in zip((*candidate, -1), (*reference, -1), strict=False)) / (len(reference) + 1)


class Counted:
    """The utility of all pairs; keeps what it was asked for."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Tokens, Tokens]] = []

    def __call__(self, candidates: Sequence[Tokens], references: Sequence[Tokens]) -> NDArray[np.float64]:
        self.pairs += [(candidate, reference) for candidate in candidates for reference in references]
        return np.array([[overlap(candidate, reference) for reference in references] for candidate in candidates])


def ended(found: list[Hypothesis]) -> list[Hypothesis]:
    return [h for h in found if not h.truncated] or found


def plain(
    model: TableModel, src: tuple[int, ...], candidates: SearchStrategy, references: SearchStrategy
) -> dict[Tokens, float]:
    """The expected utility of each candidate, duplicates and all."""
    likely = ended(references(model, [src])[0])
    weights = [1.0 if isinstance(references, Sampling) else float(np.exp(h.log_prob)) for h in likely]
    found = {}
    for candidate in ended(candidates(model, [src])[0]):
        total = 0.0
        for reference, weight in zip(likely, weights, strict=True):
            total += weight * overlap(candidate.tokens, reference.tokens)
        found[candidate.tokens] = total / sum(weights)
    return found


@pytest.mark.parametrize("candidates", [SAMPLES, LIST], ids=["samples", "list"])
@pytest.mark.parametrize("references", [None, SAMPLES, LIST], ids=["the same", "samples", "list"])
@settings(max_examples=20)
@given(seed=st.integers(0, 1000), eos_bias=st.sampled_from([-2.0, 0.0, 2.0]))
def test_is_the_best_of_a_double_loop(
    candidates: SearchStrategy, references: SearchStrategy | None, seed: int, eos_bias: float
) -> None:
    model = TableModel(seed, eos_bias)
    found = MinimumBayesRisk(candidates, Counted(), references=references, n_best=100)(model, SOURCES)
    for src, n_best in zip(SOURCES, found, strict=True):
        expected = plain(model, src, candidates, references or candidates)
        assert {h.tokens: pytest.approx(h.score) for h in n_best} == expected
        assert len(n_best) == len(expected)
        assert [h.score for h in n_best] == sorted((h.score for h in n_best), reverse=True)
        log_probs = {h.tokens: h.log_prob for h in candidates(model, [src])[0]}
        assert all(h.log_prob == pytest.approx(log_probs[h.tokens]) for h in n_best)


def test_every_pair_is_scored_once_however_often_it_was_drawn() -> None:
    model, utility = TableModel(1, eos_bias=3.0), Counted()
    drawn = ended(SAMPLES(model, [SOURCES[0]])[0])
    MinimumBayesRisk(SAMPLES, utility)(model, [SOURCES[0]])
    different = {h.tokens for h in drawn}
    assert len(different) < len(drawn)  # else this shows nothing
    assert len(utility.pairs) == len(set(utility.pairs)) == len(different) ** 2


def test_returns_as_many_as_asked_for_and_equal_ones_in_their_order() -> None:
    model = TableModel(2)
    everything = MinimumBayesRisk(LIST, Counted(), n_best=100)(model, SOURCES)
    two = MinimumBayesRisk(LIST, Counted(), n_best=2)(model, SOURCES)
    assert [[h.tokens for h in n_best] for n_best in two] == [[h.tokens for h in found[:2]] for found in everything]
    level = MinimumBayesRisk(LIST, lambda ours, theirs: np.ones((len(ours), len(theirs))), n_best=100)(model, SOURCES)
    found = [[h.tokens for h in ended(n_best)] for n_best in LIST(model, SOURCES)]
    assert [[h.tokens for h in n_best] for n_best in level] == found


def test_what_was_cut_is_no_candidate_unless_all_were() -> None:
    short = Sampling(n_best=12, seed=3, max_length_factor=0, max_length_offset=2)
    some, none = TableModel(1), TableModel(1, eos_bias=-50.0)
    assert any(h.truncated for h in short(some, [SOURCES[0]])[0])
    assert not MinimumBayesRisk(short, Counted())(some, [SOURCES[0]])[0][0].truncated
    assert MinimumBayesRisk(short, Counted())(none, [SOURCES[0]])[0][0].truncated


def test_no_sources_and_one_candidate() -> None:
    assert MinimumBayesRisk(SAMPLES, Counted())(TableModel(), []) == []
    for search in (Greedy(), BeamSearch(beam=4)):
        with pytest.raises(ConfigError, match=r"candidates\.n_best is 1, expected at least 2"):
            MinimumBayesRisk(search, Counted())
    with pytest.raises(ConfigError, match=r"search\.n_best is 0"):
        MinimumBayesRisk(SAMPLES, Counted(), n_best=0)


def test_a_translation_that_a_list_has_twice_is_one_event() -> None:
    one, other = (
        Hypothesis((token,), float(np.log(p)), 0.0, alignments=None, truncated=False)
        for token, p in ((7, 0.5), (8, 0.25))
    )
    shares = reference_shares([one, one, other], sampled=False)
    assert shares == {one.tokens: pytest.approx(2 / 3), other.tokens: pytest.approx(1 / 3)}
    shares = reference_shares([one, one, other], sampled=True)
    assert shares == {one.tokens: pytest.approx(2 / 3), other.tokens: pytest.approx(1 / 3)}
    shares = reference_shares([one, other, other], sampled=True)
    assert shares == {one.tokens: pytest.approx(1 / 3), other.tokens: pytest.approx(2 / 3)}
