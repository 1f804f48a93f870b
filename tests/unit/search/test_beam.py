"""Beam search against a brute-force search of the same model, and its promises at the edges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import VOCAB, Found, Row, TableModel, alignment_of, brute_force, log_probs_of, score_of

SOURCES = [(4, 1), (1,), (4, 4, 4), (), (1, 4, 1, 1)]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([-3.0, 0.0, 1.5]),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0]),
    length_norm=st.sampled_from(["power", "gnmt"]),
    coverage_penalty=st.sampled_from([0.0, 0.2, 2.0]),
    n_best=st.integers(1, 4),
)
def test_a_beam_as_wide_as_the_search_space_equals_brute_force(
    seed: int, eos_bias: float, length_penalty: float, length_norm: str, coverage_penalty: float, n_best: int
) -> None:
    model = TableModel(seed, eos_bias)
    search = BeamSearch(
        beam=300,
        n_best=n_best,
        length_penalty=length_penalty,
        length_norm=length_norm,  # type: ignore[arg-type]
        coverage_penalty=coverage_penalty,
        max_length_factor=0.5,
        max_length_offset=2,
    )
    for src, found in zip(SOURCES, search(model, SOURCES), strict=True):
        expected = brute_force(model, src, search)
        assert [(h.tokens, h.truncated) for h in found] == [(f.tokens, f.truncated) for f in expected]
        assert [h.log_prob for h in found] == pytest.approx([f.log_prob for f in expected])
        assert [h.score for h in found] == pytest.approx([score_of(f, src, search) for f in expected])


def plain_beam(model: TableModel, src: tuple[int, ...], search: BeamSearch) -> list[Found]:
    """The search as its docstring has it: live hypotheses are compared by log probability, ended ones by score."""
    live, ended = [Found((), 0.0, truncated=True)], list[Found]()
    for _ in range(search.lengths(len(src)).most):
        steps = [
            (Found((*h.tokens, token), h.log_prob + float(log_prob), truncated=True), token)
            for h in live
            for token, log_prob in enumerate(model.row_log_probs(Row(src, (BOS, *h.tokens))))
        ]
        steps.sort(key=lambda step: -step[0].log_prob)
        best = [h for h, token in steps[: search.beam] if token == EOS]
        ended += [Found(h.tokens[:-1], h.log_prob, truncated=False) for h in best]
        live = [h for h, token in steps if token != EOS][: search.beam]
        if len(ended) >= search.beam:
            break
    ranked = (sorted(part, key=lambda h: -score_of(h, src, search)) for part in (ended, live))
    return sum(ranked, list[Found]())[: search.n_best]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    beam=st.integers(2, 4),
    length_penalty=st.sampled_from([0.0, 1.0]),
    coverage_penalty=st.sampled_from([0.0, 2.0]),
)
def test_a_narrow_beam_equals_a_plain_one(seed: int, beam: int, length_penalty: float, coverage_penalty: float) -> None:
    search = BeamSearch(beam=beam, n_best=2, length_penalty=length_penalty, coverage_penalty=coverage_penalty)
    for src, found in zip(SOURCES, search(model := TableModel(seed), SOURCES), strict=True):
        expected = plain_beam(model, src, search)
        assert [(h.tokens, h.truncated) for h in found] == [(f.tokens, f.truncated) for f in expected]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), eos_bias=st.sampled_from([-2.0, 0.0, 2.0]))
def test_a_beam_of_one_equals_greedy(seed: int, eos_bias: float) -> None:
    model = TableModel(seed, eos_bias)
    beam = BeamSearch(beam=1, alignments=True)(model, SOURCES)
    greedy = Greedy(alignments=True)(model, SOURCES)
    for (one,), (other,) in zip(beam, greedy, strict=True):
        assert (one.tokens, one.log_prob, one.score, one.truncated) == (
            other.tokens,
            other.log_prob,
            other.score,
            other.truncated,
        )
        np.testing.assert_array_equal(one.alignments, other.alignments)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), beam=st.integers(1, 7))
def test_every_hypothesis_carries_its_own_log_prob_and_alignments(seed: int, beam: int) -> None:
    model = TableModel(seed)
    for src, n_best in zip(SOURCES, BeamSearch(beam=beam, n_best=beam, alignments=True)(model, SOURCES), strict=True):
        for hypothesis in n_best:
            written = hypothesis.written
            prefixes = [(2, *written[:at]) for at in range(len(written))]
            log_prob = sum(
                float(model.row_log_probs(Row(src, prefix))[token])
                for prefix, token in zip(prefixes, written, strict=True)
            )
            assert hypothesis.log_prob == pytest.approx(log_prob)
            looks = np.stack([alignment_of(Row(src, prefix), len(src) + 1) for prefix in prefixes])
            assert hypothesis.alignments is not None
            np.testing.assert_array_equal(hypothesis.alignments, looks)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), order=st.permutations(range(len(SOURCES))))
def test_batch_mates_and_their_order_do_not_matter(seed: int, order: list[int]) -> None:
    model = TableModel(seed)
    search = BeamSearch(beam=3, n_best=3)
    alone = [search(model, [src])[0] for src in SOURCES]
    together = search(model, [SOURCES[index] for index in order])
    assert together == [alone[index] for index in order]


def test_n_best_is_ordered_and_distinct() -> None:
    for n_best in BeamSearch(beam=5, n_best=5)(TableModel(3, 1.0), SOURCES):
        scores = [hypothesis.score for hypothesis in n_best if not hypothesis.truncated]
        assert scores == sorted(scores, reverse=True)
        assert len({(hypothesis.tokens, hypothesis.truncated) for hypothesis in n_best}) == len(n_best)


def test_score_is_the_length_normalised_log_prob() -> None:
    (found,) = BeamSearch(beam=4, length_penalty=0.6)(TableModel(1, 1.0), [SOURCES[0]])[0]
    assert not found.truncated
    assert found.score == pytest.approx(found.log_prob / (len(found.tokens) + 1) ** 0.6)


class Patient(BeamSearch):
    """Believes of every live hypothesis that it may still become the best: goes on to the length limit."""

    def bound(self, log_probs: NDArray[np.float64], limits: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(np.isfinite(log_probs), np.inf, -np.inf)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([-1.0, 0.0, 2.0]),
    penalties=st.fixed_dictionaries(
        {
            "length_penalty": st.sampled_from([0.0, 0.6, 1.0, 2.0]),
            "length_norm": st.sampled_from(["power", "gnmt"]),
            "coverage_penalty": st.sampled_from([0.0, 0.5]),
            "exact_stop": st.booleans(),
            "groups": st.sampled_from([1, 2]),
        }
    ),
    n_best=st.integers(1, 3),
)
def test_stopping_early_changes_nothing(seed: int, eos_bias: float, penalties: dict[str, Any], n_best: int) -> None:
    options = {"beam": 4, "n_best": n_best, "max_length_factor": 1.0, "max_length_offset": 5, **penalties}
    early, late = TableModel(seed, eos_bias), TableModel(seed, eos_bias)
    assert BeamSearch(**options)(early, SOURCES) == Patient(**options)(late, SOURCES)
    assert sum(early.stepped) <= sum(late.stepped)


def test_early_stopping_saves_steps() -> None:
    early, late = TableModel(1, 2.0), TableModel(1, 2.0)
    options = {"beam": 4, "exact_stop": True, "max_length_factor": 0.0, "max_length_offset": 12}
    assert BeamSearch(**options)(early, SOURCES) == Patient(**options)(late, SOURCES)
    assert len(early.stepped) < len(late.stepped) == 12


def test_an_exact_stop_finds_what_comes_after_as_many_ends_as_the_beam_is_wide() -> None:
    gains = []
    for seed in range(30):
        stops = [BeamSearch(beam=2, exact_stop=exact)(TableModel(seed, 1.0), SOURCES) for exact in (False, True)]
        gains += [late[0].score - early[0].score for early, late in zip(*stops, strict=True) if not late[0].truncated]
    assert min(gains) == 0.0
    assert max(gains) > 0.1


def test_a_model_that_never_ends_is_stopped_at_the_limit_and_flagged() -> None:
    """Fault: a model that never ends its translation.

    Effect: the search stops at the length limit and flags the translation.
    """
    found = BeamSearch(beam=3, n_best=2, max_length_factor=2.0, max_length_offset=1)(TableModel(5, -1e4), SOURCES)
    for src, n_best in zip(SOURCES, found, strict=True):
        assert [hypothesis.truncated for hypothesis in n_best] == [True, True]
        assert [len(hypothesis.tokens) for hypothesis in n_best] == [2 * len(src) + 1] * 2


def test_a_beam_wider_than_the_vocabulary_finds_all_there_is() -> None:
    """Fault: a beam that is wider than the vocabulary. Effect: the whole vocabulary is searched."""
    found = BeamSearch(beam=50, n_best=50, max_length_factor=0.0, max_length_offset=1)(TableModel(), [SOURCES[0]])[0]
    assert sorted(h.tokens for h in found) == [(), (0,), (1,), (2,), (4,)]
    assert len(found) == VOCAB


def test_finished_sentences_are_not_stepped_again() -> None:
    model = TableModel(0, -1e4)
    BeamSearch(beam=2, max_length_factor=1.0, max_length_offset=1)(model, [(), (4,), (4, 4)])
    assert model.stepped == [3, 4, 2]


class Impossible(TableModel):
    """Gives EOS no probability at all once the prefix is longer than one token."""

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = log_probs_of(row, self.seed, self.eos_bias)
        log_probs[EOS] = 0.0 if len(row.prefix) > 1 else -np.inf
        log_probs[[token for token in range(VOCAB) if token != EOS]] += -np.inf if len(row.prefix) > 1 else 0.0
        return log_probs


def test_search_stops_when_nothing_live_is_left() -> None:
    model = Impossible()
    found = BeamSearch(beam=20, n_best=20, max_length_factor=0.0, max_length_offset=50)(model, [SOURCES[0]])[0]
    assert sorted(h.tokens for h in found) == [(0,), (1,), (2,), (4,)]
    assert len(model.stepped) == 2


class Uniform(TableModel):
    """All tokens equally probable, everywhere."""

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        return np.full(VOCAB, -np.log(VOCAB), dtype=np.float32)


def test_ties_go_to_the_lower_row_and_then_to_the_models_order() -> None:
    found = BeamSearch(beam=3, n_best=3, max_length_factor=0.0, max_length_offset=2)(Uniform(), [SOURCES[0]])[0]
    assert [(h.tokens, h.truncated) for h in found] == [((0, 0), True), ((0, 1), True), ((0, 2), True)]


class Broken(TableModel):
    """Returns NaN for every row from the second step on."""

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        candidates, after = super().step(tokens, state, k)
        if len(self.stepped) > 1:
            candidates = candidates._replace(log_probs=np.full_like(candidates.log_probs, np.nan))
        return candidates, after


@pytest.mark.parametrize("search", [BeamSearch(beam=3), Greedy()])
def test_nan_from_the_model_is_an_error(search: BeamSearch | Greedy) -> None:
    with pytest.raises(InputError, match="target position 1, row 0 are \\[nan"):
        search(Broken(0, -10.0), SOURCES)


@pytest.mark.parametrize("search", [BeamSearch(beam=3, alignments=True), Greedy(alignments=True)])
def test_alignments_from_a_model_without_any_are_an_error(search: BeamSearch | Greedy) -> None:
    with pytest.raises(InputError, match="computes none"):
        search(TableModel(has_alignments=False), SOURCES)


def test_a_coverage_penalty_needs_alignments() -> None:
    with pytest.raises(InputError, match="a coverage penalty needs alignments"):
        BeamSearch(coverage_penalty=0.2)(TableModel(has_alignments=False), SOURCES)


def test_no_sentences_give_no_results() -> None:
    assert BeamSearch()(TableModel(), []) == []
