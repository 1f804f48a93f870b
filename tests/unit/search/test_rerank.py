"""Reranking against weighted sums computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis
from softsearch.search.options import SearchOptions
from softsearch.search.rerank import Rerank, RescoringModel, ScoredHypothesis, ranked
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import Row, TableModel, everything, log_probs_of

SOURCES = [(4, 1), (1,), (4, 4, 4), (), (1, 4, 1, 1)]
LIMITS = {"max_length_factor": 0, "max_length_offset": 2}
ALL = BeamSearch(beam=20, n_best=20, **LIMITS)  # type: ignore[arg-type]  # every translation that there is


def log_prob(model: TableModel, src: tuple[int, ...], tokens: tuple[int, ...]) -> float:
    written = (*tokens, EOS)
    rows = [Row(src, (BOS, *written[:place])) for place in range(len(written))]
    return float(sum(model.row_log_probs(row)[token] for row, token in zip(rows, written, strict=True)))


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    weights=st.tuples(*[st.sampled_from([-0.5, 0.0, 0.5, 1.0])] * 3).filter(any),
    length_penalty=st.sampled_from([0.0, 0.7, 1.0]),
)
def test_the_best_weighted_sum_of_all_translations_is_found(
    seed: int, weights: tuple[float, ...], length_penalty: float
) -> None:
    models = [TableModel(seed), TableModel(seed + 1), TableModel(seed + 2)]
    scorers = [RescoringModel(models[1]), RescoringModel(models[2])]
    search = Rerank(ALL, scorers, weights, length_penalty=length_penalty, n_best=3)
    options = SearchOptions(length_penalty=length_penalty, **LIMITS)  # type: ignore[arg-type]
    for src, found in zip(SOURCES[:2], search(models[0], SOURCES[:2]), strict=True):
        sums = {
            f.tokens: options.score(
                sum(w * log_prob(m, src, f.tokens) for w, m in zip(weights, models, strict=True)), len(f.tokens) + 1
            )
            for f in everything(models[0], src, options.lengths(len(src)).most)
            if not f.truncated
        }
        assert [h.score for h in found] == pytest.approx(sorted(sums.values(), reverse=True)[:3], abs=1e-4)
        for hypothesis in found:
            assert hypothesis.score == pytest.approx(sums[hypothesis.tokens], abs=1e-4)
            assert hypothesis.log_prob == pytest.approx(log_prob(models[0], src, hypothesis.tokens), abs=1e-4)


def test_a_model_alone_keeps_its_order() -> None:
    beam = BeamSearch(beam=5, n_best=5, length_penalty=0.6, alignments=True)
    plain = beam(TableModel(1, 1.0), SOURCES)
    found = Rerank(beam, [RescoringModel(TableModel(2))], [1, 0], length_penalty=0.6, n_best=5)(
        TableModel(1, 1.0), SOURCES
    )
    for ours, theirs in zip(found, plain, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs])
        np.testing.assert_array_equal(ours[0].alignments, theirs[0].alignments)


def test_a_right_to_left_model_scores_the_same_words_in_its_own_order() -> None:
    def turn(ids: object) -> list[int]:
        return list(reversed(ids))  # type: ignore[call-overload, no-any-return]

    other = TableModel(2)
    search = Rerank(BeamSearch(beam=8, n_best=8), [RescoringModel(other, src=turn, tgt=turn)], [0, 1], length_penalty=0)
    for src, (best,) in zip(SOURCES, search(TableModel(1, 1.0), SOURCES), strict=True):
        turned = tuple(reversed(src))
        assert best.score == pytest.approx(log_prob(other, turned, tuple(reversed(best.tokens))), abs=1e-4)


def test_proposals_of_another_model_are_scored_with_the_rest() -> None:
    narrow = BeamSearch(beam=2, n_best=2, **LIMITS)  # type: ignore[arg-type]
    first, other = TableModel(1, 1.0), TableModel(2, 1.0)
    search = Rerank(narrow, [RescoringModel(other)], proposers=[RescoringModel(other)], n_best=4)
    union = [
        {h.tokens for h in (*ours, *theirs) if not h.truncated}
        for ours, theirs in zip(narrow(first, SOURCES), narrow(other, SOURCES), strict=True)
    ]
    for src, found, expected in zip(SOURCES, search(first, SOURCES), union, strict=True):
        ended = [h for h in found if not h.truncated]
        assert {h.tokens for h in ended} == expected
        for hypothesis in ended:
            total = log_prob(first, src, hypothesis.tokens) + log_prob(other, src, hypothesis.tokens)
            assert hypothesis.score == pytest.approx(total / (len(hypothesis.tokens) + 1), abs=1e-4)
    assert sum(map(len, union)) > sum(not h.truncated for n_best in narrow(first, SOURCES) for h in n_best)


def test_a_proposer_writes_in_its_own_ids() -> None:
    def swap(ids: object) -> list[int]:
        return [{1: 4, 4: 1}.get(token, token) for token in ids]  # type: ignore[attr-defined]

    greedy = BeamSearch(beam=1, **LIMITS)  # type: ignore[arg-type]
    other = RescoringModel(TableModel(2, 1.0), src=swap, tgt=swap, back=swap)
    found = Rerank(greedy, [], n_best=2, proposers=[other])(TableModel(1, 1.0), SOURCES)
    proposed = greedy(TableModel(2, 1.0), [tuple(swap(src)) for src in SOURCES])
    for n_best, (hypothesis,) in zip(found, proposed, strict=True):
        assert hypothesis.truncated or tuple(swap(hypothesis.tokens)) in {h.tokens for h in n_best}


def test_translations_without_an_end_stay_behind() -> None:
    search = BeamSearch(beam=4, n_best=4, max_length_factor=0, max_length_offset=1)
    (found,) = Rerank(search, [RescoringModel(TableModel(2))], [-1, -1], n_best=4)(TableModel(1, -2.0), SOURCES[:1])
    assert [h.truncated for h in found] == sorted(h.truncated for h in found)
    assert found[-1].truncated


class Forbids(TableModel):
    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = log_probs_of(row, self.seed, self.eos_bias)
        log_probs[4] = -np.inf
        return log_probs


def test_what_a_scorer_forbids_comes_last_whatever_the_sign_of_its_weight() -> None:
    for weight in (1.0, -1.0):
        search = Rerank(ALL, [RescoringModel(Forbids(2))], [1, weight], n_best=20)
        for found in search(TableModel(1), SOURCES[:2]):
            forbidden = [4 in h.tokens for h in found if not h.truncated]
            assert forbidden == sorted(forbidden)
    untouched = Rerank(ALL, [RescoringModel(Forbids(2))], [1, 0])(TableModel(1), SOURCES[:2])
    assert all(np.isfinite(n_best[0].score) for n_best in untouched)


def test_the_length_penalty_is_of_the_searching_models_length() -> None:
    scored = [
        ScoredHypothesis(Hypothesis((4,) * length, 0.0, 0.0, None, truncated=False), log_probs)
        for length, log_probs in ((1, (-4.0, -2.0)), (2, (-9.0, -np.inf)))
    ]
    assert ranked(scored, [1.0, 0.5], 1.0) == [(0, -2.5), (1, -np.inf)]
    assert ranked(scored, [1.0, 0.0], 0.0) == [(0, -4.0), (1, -9.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0]}, "search.weights is .1.0., expected 2 numbers"),
        ({"weights": [0.0, 0.0]}, "not all 0"),
        ({"weights": [1.0, float("inf")]}, "expected 2 numbers"),
        ({"n_best": 0}, "search.n_best is 0"),
        ({"length_penalty": -1.0}, "search.length_penalty is -1.0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rerank(BeamSearch(), [RescoringModel(TableModel())], **options)  # type: ignore[arg-type]


def test_no_sentences_give_no_results() -> None:
    assert (
        Rerank(BeamSearch(), [RescoringModel(TableModel())], proposers=[RescoringModel(TableModel())])(TableModel(), [])
        == []
    )
