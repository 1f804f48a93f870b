"""Greedy search takes the best token at each step, stops at EOS or at the limit, and keeps sentences apart."""

from dataclasses import replace

import pytest

from softsearch.search.greedy import Greedy
from softsearch.search.interface import Hypothesis
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import Row, TableModel

SOURCES = [(4, 1), (1,), (4, 4, 4), ()]


@pytest.mark.parametrize("seed", range(5))
def test_it_follows_the_most_probable_token(seed: int) -> None:
    model = TableModel(seed)
    search = Greedy(max_length_factor=1.0, max_length_offset=3)
    for src, (found,) in zip(SOURCES, search(model, SOURCES), strict=True):
        tokens: list[int] = []
        while len(tokens) < search.lengths(len(src)).most and EOS not in tokens:
            tokens.append(int(model.row_log_probs(Row(src, (BOS, *tokens))).argmax()))
        assert found.truncated == (tokens[-1] != EOS)
        assert list(found.tokens) == [token for token in tokens if token != EOS]


def test_the_limit_counts_eos_and_flags_what_lacks_it() -> None:
    (found,) = Greedy(max_length_factor=0.0, max_length_offset=4)(TableModel(0, -1e4), [SOURCES[0]])[0]
    assert (len(found.tokens), found.truncated) == (4, True)
    (found,) = Greedy(max_length_factor=0.0, max_length_offset=1)(TableModel(0, 100.0), [SOURCES[0]])[0]
    assert (found.tokens, found.truncated) == ((), False)


def test_finished_sentences_are_not_stepped_again() -> None:
    model = TableModel(0, -1e4)
    Greedy(max_length_factor=1.0, max_length_offset=1)(model, [(), (4,), (4, 4)])
    assert model.stepped == [3, 2, 1]


def test_no_sentences_give_no_results() -> None:
    assert Greedy()(TableModel(), []) == []


def test_a_truncated_hypothesis_has_no_eos() -> None:
    whole = Hypothesis((4, 1), -1.0, -1.0, None, truncated=False)
    cut = replace(whole, truncated=True)
    assert (whole.written, whole.length) == ((4, 1, EOS), 3)
    assert (cut.written, cut.length) == ((4, 1), 2)
