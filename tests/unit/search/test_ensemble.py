"""Ensembles against means computed by hand, and searches of them against brute force."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.search.beam import BeamSearch
from softsearch.search.ensemble import AVERAGES, Average, Ensemble, WithMappedIds
from softsearch.search.exact import ExactSearch
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.interface import SearchStrategy, StepFunction, full_log_probs
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import VOCAB, Row, TableModel, alignment_of, brute_force, log_probs_of

SOURCES = [(4, 1), (1,), (4, 4, 4), (), (1, 4, 1, 1)]
SEEDS = (1, 2, 3)


class Mean(TableModel):
    """The oracle: what an ensemble of table models should compute, by the definition, in float64."""

    def __init__(self, models: Sequence[TableModel], weights: Sequence[float], average: Average, fusion: float) -> None:
        super().__init__()
        self.models, self.weights, self.average, self.fusion = models, weights, average, fusion
        self.language_model = TableModel(77)

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        parts = [model.row_log_probs(row).astype(np.float64) for model in self.models]
        shares = [weight / sum(self.weights) for weight in self.weights]
        if self.average == "probs":
            mean = np.log(sum(share * np.exp(part) for share, part in zip(shares, parts, strict=True)))
        else:
            product = np.prod([np.exp(part) ** share for share, part in zip(shares, parts, strict=True)], axis=0)
            mean = np.log(product / (product.sum() if self.average == "log_probs" else 1.0))
        of_language = self.language_model.row_log_probs(row._replace(src=()))
        return (mean + self.fusion * of_language).astype(np.float32)


def first_step(step_fn: StepFunction) -> NDArray[np.float32]:
    tokens = np.full(len(SOURCES), BOS, dtype=np.int64)
    return full_log_probs(step_fn, tokens, step_fn.start(SOURCES))[0]


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    average=st.sampled_from(AVERAGES),
    weights=st.tuples(*[st.sampled_from([0.1, 0.5, 1.0, 3.0])] * 3),
    fusion=st.sampled_from([0.0, 0.3, 1.5]),
)
def test_a_wide_beam_over_an_ensemble_equals_brute_force(
    seed: int, average: Average, weights: tuple[float, ...], fusion: float
) -> None:
    models = [TableModel(seed + place) for place in range(3)]
    ensemble = Ensemble(models, weights, average, TableModel(77), fusion)
    search = BeamSearch(beam=64, n_best=4, max_length_factor=0.5, max_length_offset=2)
    oracle = Mean(models, weights, average, fusion)
    for src, found in zip(SOURCES[:3], search(ensemble, SOURCES[:3]), strict=True):
        expected = brute_force(oracle, src, search)
        assert [(h.tokens, h.truncated) for h in found] == [(f.tokens, f.truncated) for f in expected]
        assert [h.log_prob for h in found] == pytest.approx([f.log_prob for f in expected], abs=1e-4)


@pytest.mark.parametrize("average", AVERAGES)
def test_one_member_is_the_member(average: Average) -> None:
    search = BeamSearch(beam=4, n_best=4, alignments=True)
    alone, ensemble = TableModel(5), Ensemble([TableModel(5)], [0.3], average)
    for ours, theirs in zip(search(ensemble, SOURCES), search(alone, SOURCES), strict=True):
        assert [(h.tokens, h.log_prob, h.score) for h in ours] == [(h.tokens, h.log_prob, h.score) for h in theirs]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one.alignments, other.alignments)


@pytest.mark.parametrize("average", AVERAGES)
def test_the_same_member_twice_is_the_member(average: Average) -> None:
    found, expected = first_step(Ensemble([TableModel(5), TableModel(5)], None, average)), first_step(TableModel(5))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("average", ["log_probs", "probs"])
def test_a_mean_is_a_distribution_and_only_k_leave_it(average: Average) -> None:
    ensemble = Ensemble([TableModel(seed) for seed in SEEDS], average=average)
    everything = first_step(ensemble)
    np.testing.assert_allclose(np.exp(everything).sum(axis=1), 1.0, atol=1e-6)
    for k in range(1, VOCAB):
        candidates, _ = ensemble.step(np.full(len(SOURCES), BOS), ensemble.start(SOURCES), k)
        best = np.argsort(-everything, axis=1)[:, :k]
        np.testing.assert_array_equal(candidates.tokens, best)
        np.testing.assert_array_equal(candidates.log_probs, np.take_along_axis(everything, best, axis=1))


def test_unnormalised_scores_of_a_translation_are_the_weighted_sum_of_the_members_own() -> None:
    models, weights = [TableModel(1), TableModel(2)], [0.25, 0.75]
    src, tgt = [SOURCES[0], SOURCES[4]], [(4, 1, 1), (4,)]
    score = partial(score_pairs, src=src, tgt=tgt, batch_tokens=100)
    own = np.array([[pair.log_prob for pair in score(model)] for model in models])
    unnormalised = [pair.log_prob for pair in score(Ensemble(models, weights, "unnormalised_log_probs"))]
    assert unnormalised == pytest.approx(list(weights @ own), abs=1e-5)
    normalised = [pair.log_prob for pair in score(Ensemble(models, weights, "log_probs"))]
    assert all(ours > theirs + 0.01 for ours, theirs in zip(normalised, unnormalised, strict=True))


class Disagrees(TableModel):
    """Begins with 1 or, a little less probably, 4; after 4 it is sure to end, after 1 half of it is for its own."""

    def __init__(self, own: int) -> None:
        super().__init__()
        self.own = own

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        probs = {(BOS,): {1: 0.52, 4: 0.48}, (BOS, 4): {EOS: 1.0}, (BOS, 1): {EOS: 0.5, self.own: 0.5}}
        found = probs.get(row.prefix, {EOS: 1.0})
        with np.errstate(divide="ignore"):
            return np.log([found.get(token, 0.0) for token in range(VOCAB)]).astype(np.float32)


@pytest.mark.parametrize("search", [BeamSearch(beam=3, length_penalty=0), ExactSearch()])
def test_only_without_normalisation_does_disagreement_cost_a_translation_something(search: SearchStrategy) -> None:
    members = [Disagrees(own=1), Disagrees(own=4)]
    expected: dict[Average, tuple[tuple[int, ...], float]] = {
        "log_probs": ((1,), 0.52),
        "unnormalised_log_probs": ((4,), 0.48),
    }
    for average, (tokens, prob) in expected.items():
        ((found,),) = search(Ensemble(members, average=average), [SOURCES[0]])
        assert found.tokens == tokens
        assert found.log_prob == pytest.approx(np.log(prob), abs=1e-6)


def test_what_is_a_distribution() -> None:
    models = [TableModel(1), TableModel(2)]
    assert [Ensemble(models, average=average).is_distribution for average in AVERAGES] == [True, False, True]
    assert Ensemble(models, [1, 0], "unnormalised_log_probs").is_distribution
    assert not Ensemble(models, None, "probs", TableModel(3), 0.5).is_distribution
    assert Ensemble(models, None, "probs", TableModel(3), 0.0).is_distribution


def test_only_the_ratio_of_weights_matters_and_the_ones_of_0_are_never_run() -> None:
    models = [TableModel(1), TableModel(2)]
    np.testing.assert_array_equal(first_step(Ensemble(models, [1, 3])), first_step(Ensemble(models, [2, 6])))
    idle, language_model = TableModel(3), TableModel(4)
    found = first_step(Ensemble([TableModel(1), idle], [2, 0], "log_probs", language_model, 0.0))
    np.testing.assert_array_equal(found, first_step(TableModel(1)))
    assert not idle.stepped
    assert not language_model.stepped


class Forbids(TableModel):
    """Holds one token impossible."""

    def __init__(self, seed: int, token: int) -> None:
        super().__init__(seed)
        self.token = token

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = log_probs_of(row, self.seed, self.eos_bias)
        log_probs[self.token] = -np.inf
        return log_probs


def test_what_one_member_forbids() -> None:
    members = [Forbids(1, token=4), TableModel(2)]
    tokens = np.full(len(SOURCES), BOS, dtype=np.int64)
    product = Ensemble(members)
    by_token, _, _ = full_log_probs(product, tokens, product.start(SOURCES))
    assert np.isneginf(by_token[:, 4]).all()
    np.testing.assert_allclose(np.exp(by_token).sum(axis=1), 1.0, atol=1e-6)
    mixture = Ensemble(members, [3, 1], "probs")
    by_token, _, _ = full_log_probs(mixture, tokens, mixture.start(SOURCES))
    expected = [TableModel(2).row_log_probs(Row(src, (BOS,)))[4] + np.log(0.25) for src in SOURCES]
    np.testing.assert_allclose(by_token[:, 4], expected, atol=1e-6)


class Certain(TableModel):
    """Allows one token and no other."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.token = token

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        return np.where(np.arange(VOCAB) == self.token, 0.0, -np.inf).astype(np.float32)


def test_members_that_agree_on_nothing_are_an_error_of_the_search() -> None:
    with pytest.raises(InputError, match="expected finite numbers"):
        BeamSearch(beam=2)(Ensemble([Certain(1), Certain(4)]), SOURCES)
    (found,) = BeamSearch(beam=2, length_penalty=0)(
        Ensemble([Certain(EOS), Certain(4)], [1, 3], "probs"), [SOURCES[0]]
    )[0]
    assert found.tokens == ()
    assert found.log_prob == pytest.approx(np.log(0.25))


def test_ties_come_in_the_order_of_the_ids() -> None:
    ensemble = Ensemble([Certain(EOS), Certain(1)], None, "probs")
    candidates, _ = ensemble.step(np.array([BOS]), ensemble.start([()]), 2)
    assert candidates.tokens.tolist() == [[1, EOS]]


def test_a_language_model_reads_no_source() -> None:
    fused = Ensemble([TableModel(1)], None, "log_probs", TableModel(2), 0.5)
    tokens = np.full(len(SOURCES), BOS, dtype=np.int64)
    by_token, _, _ = full_log_probs(fused, tokens, fused.start(SOURCES))
    for src, found in zip(SOURCES, by_token, strict=True):
        expected = log_probs_of(Row(src, (BOS,)), 1, 0.0) + 0.5 * log_probs_of(Row((), (BOS,)), 2, 0.0)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_alignments_are_the_weighted_mean_of_those_that_there_are() -> None:
    tokens, row = np.array([BOS]), Row(SOURCES[0], (BOS,))
    looks = alignment_of(row, len(row.src) + 1)

    class Elsewhere(TableModel):
        def step(self, tokens, state, k):  # type: ignore[no-untyped-def]
            candidates, after = super().step(tokens, state, k)
            return candidates._replace(alignments=np.array([[0.0, 0.0, 1.0]], dtype=np.float32)), after

    def mean(*members: TableModel) -> NDArray[np.float32] | None:
        ensemble = Ensemble(members, [1, 2, 5][: len(members)])
        return ensemble.step(tokens, ensemble.start([row.src]), 2)[0].alignments

    found = mean(TableModel(1), Elsewhere(2), TableModel(3, has_alignments=False))
    assert found is not None
    np.testing.assert_allclose(found[0], (looks + 2 * np.array([0, 0, 1])) / 3, atol=1e-6)
    assert mean(TableModel(1, has_alignments=False), TableModel(2, has_alignments=False)) is None


def test_an_ensemble_attends_if_a_member_that_counts_does() -> None:
    blind, attends = TableModel(1, has_alignments=False), TableModel(2)
    assert Ensemble([blind, attends]).has_attention
    assert not Ensemble([blind, attends], [1, 0]).has_attention
    assert not Ensemble([blind], language_model=attends, language_model_weight=1).has_attention
    assert not WithMappedIds(attends, list).has_attention
    for model in (blind, attends):
        assert (
            ShortlistStep(model, Shortlist(np.arange(VOCAB), np.full((9, 1), -1))).has_attention == model.has_attention
        )


def test_a_member_that_reads_other_ids_is_recoded() -> None:
    backwards = WithMappedIds(TableModel(1), lambda ids: list(reversed(ids)))
    search = BeamSearch(beam=4, n_best=4)
    turned = [tuple(reversed(src)) for src in SOURCES]
    found, expected = search(backwards, SOURCES), search(TableModel(1), turned)
    for ours, theirs in zip(found, expected, strict=True):
        assert [(h.tokens, h.log_prob) for h in ours] == [(h.tokens, h.log_prob) for h in theirs]
    candidates, _ = backwards.step(np.array([BOS]), backwards.start(SOURCES[:1]), 1)
    assert candidates.alignments is None
    mixed = BeamSearch(beam=3, alignments=True)(Ensemble([TableModel(2), backwards]), SOURCES)
    assert all(h.alignments is not None for n_best in mixed for h in n_best)


class Larger(TableModel):
    vocab_size = VOCAB + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": []}, "an ensemble of no models"),
        ({"weights": [1.0]}, r"2 models are \[1.0\], expected 2 numbers"),
        ({"weights": [1.0, -1.0]}, "at least 0 that are not all 0"),
        ({"weights": [0.0, 0.0]}, "at least 0 that are not all 0"),
        ({"weights": [1.0, float("nan")]}, "at least 0"),
        ({"average": "mean"}, "is 'mean', expected one of log_probs, unnormalised_log_probs, probs"),
        ({"language_model": TableModel(), "language_model_weight": -0.1}, "weight is -0.1, expected a number of at"),
        ({"members": [TableModel(), Larger()]}, "5 and 6 target tokens, expected one target vocabulary"),
        ({"language_model": Larger()}, "5 and 6 target tokens"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Ensemble(**{"members": [TableModel(1), TableModel(2)], **arguments})  # type: ignore[arg-type]
