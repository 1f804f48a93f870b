"""Batches respect the budget, hold every sentence once, and leave no trace in the results."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.errors import ConfigError, InputError
from softsearch.search.batching import plan_batches, translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis, StepFunction
from tests.support.tables import TableModel


@given(lengths=st.lists(st.integers(1, 60), max_size=80), batch_tokens=st.integers(1, 100))
def test_batches_hold_each_sentence_once_within_the_budget(lengths: list[int], batch_tokens: int) -> None:
    batches = plan_batches(lengths, batch_tokens)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * longest <= batch_tokens


def test_batches_are_filled() -> None:
    assert plan_batches([3, 5, 5, 2, 9], 10) == [[4], [1, 2], [0, 3]]


@settings(max_examples=15)
@given(
    sources=st.lists(st.lists(st.sampled_from([1, 4]), max_size=4), max_size=12),
    batch_tokens=st.integers(1, 30),
    workers=st.integers(1, 3),
)
def test_results_do_not_depend_on_batches_or_threads(sources: list[list[int]], batch_tokens: int, workers: int) -> None:
    model, search = TableModel(2), BeamSearch(beam=2, n_best=2)
    alone = [search(model, [src])[0] for src in sources]
    assert translate_ids(model, search, sources, batch_tokens=batch_tokens, workers=workers) == alone


def test_progress_counts_every_sentence() -> None:
    counts: list[int] = []
    translate_ids(TableModel(), BeamSearch(), [[4]] * 5, batch_tokens=4, on_done=counts.append)
    assert counts == [2, 2, 1]


@pytest.mark.parametrize("bad", [{"batch_tokens": 0}, {"batch_tokens": 10, "workers": 0}])
def test_budgets_below_one_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="is 0, expected at least 1"):
        translate_ids(TableModel(), BeamSearch(), [[]], **bad)


@pytest.mark.parametrize("workers", [1, 2])
def test_after_an_error_no_further_batch_is_begun(workers: int) -> None:
    begun: list[int] = []

    def strategy(step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        begun.append(len(src))
        raise InputError("broken")

    with pytest.raises(InputError, match="broken"):
        translate_ids(TableModel(), strategy, [[]] * 10_000, batch_tokens=1, workers=workers)
    assert len(begun) < 10_000
