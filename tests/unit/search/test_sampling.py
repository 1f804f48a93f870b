"""Sampling follows the model's probabilities, or the part of them that was asked for, whatever runs beside it."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.batching import translate_ids
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import VOCAB, Row, TableModel, alignment_of
from tests.unit.search.test_beam import SOURCES, Broken

SAMPLES = 3000


def chi_square_limit(degrees: int) -> float:
    """What chi-square exceeds in about one of a thousand cases (Wilson & Hilferty 1931)."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + 3.09 * spread**0.5) ** 3)


def likely_part(log_probs: NDArray[np.float32], temperature: float, top_k: int | None, top_p: float) -> list[float]:
    """The definition, one token at a time."""
    probs = np.exp(log_probs.astype(np.float64) / temperature)
    probs /= probs.sum()
    best_first = sorted(range(VOCAB), key=lambda token: -probs[token])[:top_k]
    whole = sum(probs[token] for token in best_first)
    kept: dict[int, float] = {}
    for token in best_first:
        if sum(kept.values()) < top_p * whole:
            kept[token] = probs[token]
    return [kept.get(token, 0.0) / sum(kept.values()) for token in range(VOCAB)]


def outcomes(model: TableModel, src: tuple[int, ...], options: dict[str, Any]) -> dict[tuple[int, ...], float]:
    """The probability of each translation of two tokens at most, EOS included where it is."""
    part = {"temperature": 1.0, "top_k": None, "top_p": 1.0} | options
    first = likely_part(model.row_log_probs(Row(src, (BOS,))), **part)
    found = {(EOS,): first[EOS]}
    for token in set(range(VOCAB)) - {EOS}:
        second = likely_part(model.row_log_probs(Row(src, (BOS, token))), **part)
        found |= {(token, last): first[token] * second[last] for last in range(VOCAB)}
    return {tokens: p for tokens, p in found.items() if p}


@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.6}, {"top_k": 3, "top_p": 0.8},
     {"temperature": 1.5, "top_p": 0.5}],
    ids=str,
)  # fmt: skip
def test_samples_come_as_often_as_the_model_says(options: dict[str, Any]) -> None:
    model, src = TableModel(4), SOURCES[0]
    search = Sampling(n_best=SAMPLES, seed=5, max_length_factor=0.0, max_length_offset=2, **options)
    written = [h.written for h in search(model, [src])[0]]
    counts, expected = Counter(written), outcomes(model, src, options)
    assert set(counts) <= set(expected)
    rare = [tokens for tokens, p in expected.items() if p * SAMPLES < 5]  # together one class
    classes = [[tokens] for tokens in expected if tokens not in rare] + ([rare] if rare else [])
    statistic = 0.0
    for members in classes:
        mean = SAMPLES * sum(expected[tokens] for tokens in members)
        statistic += (sum(counts[tokens] for tokens in members) - mean) ** 2 / mean
    assert len(classes) > 3
    assert statistic < chi_square_limit(len(classes) - 1)


def test_parts_of_the_distribution_are_as_small_as_they_should_be() -> None:
    sizes = [len(outcomes(TableModel(2), SOURCES[0], options)) for options in ({}, {"top_k": 2}, {"top_p": 0.6})]
    assert sizes[0] == 1 + 4 * VOCAB
    assert 1 < sizes[2] < sizes[0]
    assert 1 < sizes[1] < sizes[0]


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    order=st.permutations(range(len(SOURCES))),
    options=st.sampled_from([{}, {"top_k": 3}, {"top_p": 0.7}, {"top_k": 3, "top_p": 0.7, "temperature": 2.0}]),
    batch_tokens=st.integers(1, 30),
    workers=st.integers(1, 3),
)
def test_samples_depend_on_the_seed_and_the_sentence_alone(
    seed: int, order: list[int], options: dict[str, Any], batch_tokens: int, workers: int
) -> None:
    model, search = TableModel(3), Sampling(n_best=3, seed=seed, **options)
    alone = [search(model, [src])[0] for src in SOURCES]
    sources = [SOURCES[index] for index in order]
    assert search(model, sources) == [alone[index] for index in order]
    found = translate_ids(model, search, sources, batch_tokens=batch_tokens, workers=workers)
    assert found == [alone[index] for index in order]
    for few, many in zip(alone, Sampling(n_best=5, seed=seed, **options)(model, SOURCES), strict=True):
        assert Counter(h.tokens for h in few) <= Counter(h.tokens for h in many)


def test_another_seed_gives_other_samples() -> None:
    one, other = (Sampling(seed=seed, n_best=4)(TableModel(), SOURCES) for seed in (1, 2))
    assert one != other


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), likely=st.sampled_from([{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-9}]))
def test_the_most_likely_part_alone_is_greedy_search(seed: int, likely: dict[str, Any]) -> None:
    model = TableModel(seed)
    assert Sampling(**likely)(model, SOURCES) == Greedy()(model, SOURCES)


def test_log_probs_scores_and_alignments_are_the_models_own() -> None:
    model = TableModel(4)
    search = Sampling(n_best=3, temperature=3.0, top_k=4, alignments=True)
    for src, samples in zip(SOURCES, search(model, SOURCES), strict=True):
        assert len(samples) == 3
        assert samples == sorted(samples, key=lambda h: (h.truncated, -h.score))
        for sample in samples:
            written = sample.written
            rows = [Row(src, (BOS, *written[:at])) for at in range(len(written))]
            log_prob = sum(float(model.row_log_probs(row)[t]) for row, t in zip(rows, written, strict=True))
            assert sample.log_prob == pytest.approx(log_prob)
            assert sample.score == pytest.approx(log_prob / len(written))
            assert sample.alignments is not None
            np.testing.assert_array_equal(sample.alignments, [alignment_of(row, len(src) + 1) for row in rows])


class Shuffled(TableModel):
    """Returns its candidates in another order."""

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        candidates, after = super().step(tokens, state, k)
        order = np.argsort(candidates.tokens, axis=1)
        arrays = (np.take_along_axis(array, order, axis=1) for array in candidates[:2])
        return Candidates(*arrays, candidates.alignments), after


@pytest.mark.parametrize("options", [{}, {"top_p": 0.7}, {"top_k": 3}, {"top_k": 3, "banned": (1, 0)}], ids=str)
def test_samples_do_not_depend_on_the_order_of_candidates(options: dict[str, Any]) -> None:
    search = Sampling(n_best=4, **options)
    assert search(Shuffled(6), SOURCES) == search(TableModel(6), SOURCES)


def test_a_model_that_never_ends_is_stopped_at_the_limit_and_flagged() -> None:
    found = Sampling(n_best=2, max_length_factor=2.0, max_length_offset=1)(TableModel(5, -1e4), SOURCES)
    for src, samples in zip(SOURCES, found, strict=True):
        assert [sample.truncated for sample in samples] == [True, True]
        assert [len(sample.tokens) for sample in samples] == [2 * len(src) + 1] * 2


def test_no_sentences_give_no_results() -> None:
    assert Sampling()(TableModel(), []) == []


def test_nan_from_the_model_is_an_error() -> None:
    with pytest.raises(InputError, match="target position 1, row 0 are \\[nan"):
        Sampling()(Broken(0, -10.0), SOURCES)
