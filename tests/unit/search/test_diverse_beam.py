"""Diverse beam search against its definition, one sentence and one group at a time."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.search.beam import BeamSearch
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import VOCAB, Row, TableModel
from tests.unit.search.test_beam import SOURCES


class Live(NamedTuple):
    tokens: tuple[int, ...]
    log_prob: float


def diverse(model: TableModel, src: tuple[int, ...], search: BeamSearch) -> set[tuple[int, ...]]:
    """What all groups find until each has its share or the limit is reached."""
    size = search.beam // search.groups
    groups = [[Live((), 0.0)] for _ in range(search.groups)]
    ended: list[list[tuple[int, ...]]] = [[] for _ in groups]
    for _ in range(search.lengths(len(src)).most):
        taken: list[int] = []
        for group, live in enumerate(groups):
            options = [
                Live((*row.tokens, token), row.log_prob + float(log_prob))
                for row in live
                for token, log_prob in enumerate(model.row_log_probs(Row(src, (BOS, *row.tokens))))
            ]
            options.sort(key=lambda o: o.log_prob - search.diversity * taken.count(o.tokens[-1]), reverse=True)
            ended[group] += [option.tokens[:-1] for option in options[:size] if option.tokens[-1] == EOS]
            going = [option for option in options if option.tokens[-1] != EOS][:size]
            groups[group] = going if len(ended[group]) < size else []
            taken += [option.tokens[-1] for option in groups[group]]
    return {tokens for group in ended for tokens in group}


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([0.0, 1.5]),
    shape=st.sampled_from([(2, 2), (4, 2), (6, 2), (6, 3), (4, 4), (3, 1)]),
    diversity=st.sampled_from([0.0, 0.4, 5.0]),
)
def test_groups_find_what_they_should(seed: int, eos_bias: float, shape: tuple[int, int], diversity: float) -> None:
    model = TableModel(seed, eos_bias)
    beam, groups = shape
    search = BeamSearch(beam=beam, n_best=beam, groups=groups, diversity=diversity, max_length_factor=1.0)
    for src, n_best in zip(SOURCES, search(model, SOURCES), strict=True):
        found = [h.tokens for h in n_best if not h.truncated]
        expected = diverse(model, src, search)
        assert len(set(found)) == len(found) == min(len(expected), beam)
        assert set(found) <= expected


def test_without_diversity_all_groups_find_the_same_once() -> None:
    options = {"n_best": 3, "max_length_factor": 0.0, "max_length_offset": 60}
    for seed in range(5):
        model = TableModel(seed, 1.0)
        one = BeamSearch(beam=3, **options)(model, SOURCES)
        assert BeamSearch(beam=9, groups=3, diversity=0.0, **options)(model, SOURCES) == one


def test_log_probs_and_scores_do_not_contain_the_diversity() -> None:
    model = TableModel(1)
    for src, n_best in zip(SOURCES, BeamSearch(beam=4, n_best=4, groups=4, diversity=9.0)(model, SOURCES), strict=True):
        for found in n_best:
            written = found.written
            log_probs = [model.row_log_probs(Row(src, (BOS, *written[:at])))[t] for at, t in enumerate(written)]
            assert found.log_prob == pytest.approx(float(sum(log_probs)))
            assert found.score == pytest.approx(found.log_prob / len(written))


def test_groups_differ_from_the_first_token_on_when_diversity_is_strong() -> None:
    search = BeamSearch(beam=4, n_best=4, groups=4, diversity=1e3, max_length_factor=0.0, max_length_offset=3)
    for n_best in search(TableModel(0, -1e4), SOURCES):
        assert sorted(h.tokens[0] for h in n_best) == sorted(set(range(VOCAB)) - {EOS})
