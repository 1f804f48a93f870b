"""Exact search against a brute-force search of the same model, and what it says of itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.interface import Candidates, Hypothesis, whole_vocabulary
from softsearch.text.vocabulary import EOS
from tests.support.tables import VOCAB, Found, Row, TableModel, everything, keeps, log_probs_of

SOURCES = [(4, 1), (1,), (4, 4, 4), (), (1, 4, 1, 1)]
SHORT: dict[str, Any] = {"max_length_factor": 0.5, "max_length_offset": 2}


def truth(model: TableModel, src: tuple[int, ...], search: ExactSearch) -> Found:
    """The most probable translation of all, finished ones first."""
    limit = search.options.lengths(len(src)).most
    allowed = (found for found in everything(model, src, limit) if keeps(found, src, search.options))
    return max(allowed, key=lambda found: (not found.truncated, found.log_prob))


def table(seed: int, eos_bias: float = 0.0) -> TableModel:
    return TableModel(seed, eos_bias, has_alignments=False)


class Searched(NamedTuple):
    best: Hypothesis
    beam: Hypothesis
    nodes: int  # prefixes that the model read, except those of beam search


def explore(search: ExactSearch, model: TableModel, sources: Sequence[tuple[int, ...]]) -> list[Searched]:
    """Exact search with beam search's answers, and the prefixes that it read of sources that are all different."""
    beam = search.options(model, sources)
    read: set[Row] = set()
    start, row_log_probs = model.start, model.row_log_probs

    def forget_beam_search(src: Sequence[Sequence[int]]) -> list[list[Row]]:
        read.clear()
        return start(src)

    def note(row: Row) -> NDArray[np.float32]:
        read.add(row)
        return row_log_probs(row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "start", forget_beam_search)
        patch.setattr(model, "row_log_probs", note)
        found = search(model, sources)
    nodes = Counter(row.src for row in read)
    return [Searched(best, first, nodes[src]) for src, (best,), (first, *_) in zip(sources, found, beam, strict=True)]


class Wide(TableModel):
    """Has 200 tokens, more than exact search asks for at first, all but four of them impossible or alike."""

    vocab_size = 200

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = np.random.default_rng([self.seed, *row.src, 99, *row.prefix]).normal(size=self.vocab_size)
        log_probs[EOS] += self.eos_bias
        return (log_probs - np.log(np.exp(log_probs).sum())).astype(np.float32)

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        after = [
            [Row(row.src, (*row.prefix, token)) for row, token in zip(rows, row_tokens, strict=True)]
            for rows, row_tokens in zip(state, tokens.reshape(len(state), -1).tolist(), strict=True)
        ]
        table = np.stack([self.row_log_probs(row) for rows in after for row in rows])
        if k == self.vocab_size:
            return whole_vocabulary(table, None), after
        best = np.argsort(-table, axis=1, kind="stable")[:, :k]
        return Candidates(np.take_along_axis(table, best, axis=1), best, None), after


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([-6.0, -3.0, 0.0, 1.5, 4.0]),
    beam=st.integers(1, 3),
    min_length=st.integers(0, 3),
)
def test_it_equals_brute_force(seed: int, eos_bias: float, beam: int, min_length: int) -> None:
    model = table(seed, eos_bias)
    search = ExactSearch(beam=beam, min_length_offset=min_length, **SHORT)
    for src, explored in zip(SOURCES, explore(search, model, SOURCES), strict=True):
        expected = truth(model, src, search)
        assert (explored.best.tokens, explored.best.truncated) == (expected.tokens, expected.truncated)
        assert explored.best.log_prob == explored.best.score == pytest.approx(expected.log_prob)
        assert explored.best.optimal


def test_it_finds_what_beam_search_misses_and_says_where() -> None:
    missed, right = 0, 0
    search = ExactSearch(beam=1, **SHORT)
    for seed in range(30):
        model = table(seed)
        beam = BeamSearch(beam=1, length_penalty=0.0, **SHORT)(model, SOURCES)
        for explored, (expected,) in zip(explore(search, model, SOURCES), beam, strict=True):
            assert explored.beam == expected
            if explored.best.tokens == expected.tokens:
                assert replace(explored.best, optimal=None) == expected
                right += 1
            else:
                assert explored.best.log_prob > expected.log_prob or expected.truncated
                missed += 1
    assert missed > 10
    assert right > 10


def test_the_empty_sentence_is_found_where_it_is_best() -> None:
    class LikesNothing(TableModel):
        """Ends at once with 0.3, and else must write two tokens, each with 0.35 at best, before it may end."""

        def row_log_probs(self, row: Row) -> NDArray[np.float32]:
            shares = {1: (0.1, 0.1, 0.15, 0.3, 0.35), 2: (0.2, 0.2, 0.25, 0.0, 0.35)}
            with np.errstate(divide="ignore"):
                return np.log(np.array(shares.get(len(row.prefix), (0, 0, 0, 1, 0)), dtype=np.float32))

    search = ExactSearch(beam=1, max_length_factor=0.0, max_length_offset=6)
    (explored,) = explore(search, LikesNothing(), [(4,)])
    assert explored.beam.tokens == (4, 4)
    assert explored.best.tokens == ()
    assert explored.best.log_prob == pytest.approx(np.log(0.3))
    assert explored.best.optimal
    assert explored.nodes == 2  # BOS and 4: what begins with another token has at most 0.15
    longer = ExactSearch(beam=1, max_length_factor=0.0, max_length_offset=6, min_length_offset=2)
    assert longer(LikesNothing(), [(4,)])[0][0].tokens == (4, 4)


def test_nothing_below_the_bound_is_expanded() -> None:
    seen = 0
    for seed in range(6):
        model = table(seed, eos_bias=1.0)
        search = ExactSearch(beam=100, **SHORT)  # finds the best, so that the bound is right from the start
        for src, explored in zip(SOURCES, explore(search, model, SOURCES), strict=True):
            needed, level = 0, list[tuple[tuple[int, ...], float]]([((2,), 0.0)])
            for _ in range(search.options.lengths(len(src)).most):
                needed += len(level)
                children = [
                    ((*prefix, token), so_far + float(log_prob))
                    for prefix, so_far in level
                    for token, log_prob in enumerate(model.row_log_probs(Row(src, prefix)))
                ]
                level = [c for c in children if c[0][-1] != EOS and c[1] > explored.best.log_prob]
            assert explored.nodes == needed
            seen += needed
    assert seen > 6 * len(SOURCES)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), limit=st.integers(1, 40))
def test_the_limit_on_nodes_is_kept_and_reported(seed: int, limit: int) -> None:
    model = table(seed, eos_bias=-3.0)
    limited = explore(ExactSearch(beam=1, max_nodes=limit, **SHORT), model, SOURCES)
    unlimited = explore(ExactSearch(beam=1, **SHORT), model, SOURCES)
    for short, full in zip(limited, unlimited, strict=True):
        assert short.nodes <= limit
        assert full.nodes <= limit or short.nodes == limit
        assert short.best.optimal or short.best.truncated or full.nodes > limit
        if short.best.optimal:
            assert short.best == full.best
        elif not short.best.truncated:
            assert short.best.log_prob <= full.best.log_prob
            assert short.beam.truncated or short.best.log_prob >= short.beam.log_prob


class Endless(TableModel):
    """Gives EOS no probability at all."""

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = log_probs_of(row, self.seed, self.eos_bias)
        log_probs[EOS] = -np.inf
        return log_probs


def test_a_model_that_never_ends_gives_beam_searchs_answer_and_says_so() -> None:
    search = ExactSearch(beam=2, **SHORT)
    for src, explored in zip(SOURCES, explore(search, Endless(), SOURCES), strict=True):
        limit = search.options.lengths(len(src)).most
        assert explored.nodes == sum(4**depth for depth in range(limit))
        assert explored.best.truncated
        assert len(explored.best.tokens) == limit
        assert explored.best == replace(explored.beam, optimal=False)
    # 1 + 4 + 16 + 64 + 256 are 341; 181 are used up between two blocks of 16 of the 64.
    for nodes in (1, 20, 181, 340, 341, 342):
        search = ExactSearch(beam=2, max_nodes=nodes, max_length_factor=0.0, max_length_offset=5)
        (explored,) = explore(search, Endless(), SOURCES[:1])
        assert explored.nodes == min(nodes, 341)
    for explored in explore(ExactSearch(max_nodes=50, max_length_offset=12), Endless(), SOURCES):
        assert (explored.nodes, explored.best.optimal, explored.best.truncated) == (50, False, True)


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), limit=st.sampled_from([15, 1000]), order=st.permutations(range(len(SOURCES))))
def test_batch_mates_and_their_order_do_not_matter(seed: int, limit: int, order: list[int]) -> None:
    model = table(seed, eos_bias=-2.0)
    search = ExactSearch(beam=2, max_nodes=limit, **SHORT)
    alone = [explore(search, model, [src])[0] for src in SOURCES]
    assert explore(search, model, [SOURCES[index] for index in order]) == [alone[index] for index in order]


def test_there_may_be_more_sentences_than_are_searched_side_by_side() -> None:
    model, search = table(4, eos_bias=-2.0), ExactSearch(beam=2, **SHORT)
    assert search(model, SOURCES * 5) == search(model, SOURCES) * 5


@pytest.mark.parametrize("eos_bias", [-3.0, 2.0])
def test_a_wide_vocabulary_is_searched_to_its_end(eos_bias: float) -> None:
    model, search = Wide(3, eos_bias), ExactSearch(beam=2, max_length_factor=0.0, max_length_offset=2)
    for src, ((found,),) in zip(SOURCES, ([h] for h in search(model, SOURCES)), strict=True):
        first = model.row_log_probs(Row(src, (2,)))
        log_probs = {(): float(first[EOS])} | {
            (token,): float(first[token]) + float(model.row_log_probs(Row(src, (2, token)))[EOS])
            for token in range(model.vocab_size)
            if token != EOS
        }
        best = max(log_probs, key=lambda tokens: log_probs[tokens])
        assert (found.tokens, found.optimal) == (best, True)
        assert found.log_prob == pytest.approx(log_probs[best])


class Broken(TableModel):
    """Returns NaN for prefixes of more than two tokens, where beam search does not get."""

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        return np.full(VOCAB, np.nan, np.float32) if len(row.prefix) > 3 else super().row_log_probs(row)


def test_nan_from_the_model_is_an_error() -> None:
    with pytest.raises(InputError, match="expected finite numbers"):
        ExactSearch(beam=1)(Broken(0, eos_bias=-8.0), SOURCES)


def test_no_sentences_give_no_results() -> None:
    assert ExactSearch()(TableModel(), []) == []
