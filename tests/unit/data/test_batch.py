"""How sentences become padded batches under a token budget."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.data.batch import Batching, pad, padding_efficiency
from softsearch.errors import ConfigError
from softsearch.text.vocabulary import BOS, EOS, PAD

Lengths = NDArray[np.int64]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Lengths, Lengths, Batching]:
    pairs = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=80))
    tokens = draw(st.integers(30, 200))
    sentences = draw(st.none() | st.integers(1, 10))
    src, tgt = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return src, tgt, Batching(tokens=tokens, sentences=sentences)


@given(corpora())
def test_cut_keeps_every_sentence_within_the_budget(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    assert sorted(np.concatenate([np.empty(0, int), *batches])) == list(range(len(src)))
    for batch in batches:
        assert len(batch) * max(src[batch].max(), tgt[batch].max()) <= batching.tokens
        assert batching.sentences is None or len(batch) <= batching.sentences


@given(corpora())
def test_cut_sorts_by_target_length_and_lets_source_length_rise_and_fall(
    corpus: tuple[Lengths, Lengths, Batching],
) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    order = [(tgt[i], src[i] if tgt[i] % 2 == 0 else -src[i]) for batch in batches for i in batch]
    assert order == sorted(order)


@given(corpora())
def test_cut_fills_each_batch(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    for batch, after in pairwise(batches):
        widest = max(*src[[*batch, after[0]]], *tgt[[*batch, after[0]]])
        full = batching.sentences is not None and len(batch) == batching.sentences
        assert full or (len(batch) + 1) * widest > batching.tokens


@given(corpora())
def test_cut_is_that_of_a_walk_over_all_sentences(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    """As it was defined first, one sentence after the other. Old runs resume by it."""
    src, tgt, batching = corpus
    order = np.lexsort((np.where(tgt % 2 == 0, src, -src), tgt))
    most = len(order) if batching.sentences is None else batching.sentences
    batches, batch, width = [], [], 0
    for index in order.tolist():
        wider = max(width, src[index], tgt[index])
        if batch and ((len(batch) + 1) * wider > batching.tokens or len(batch) >= most):
            batches.append(batch)
            batch, wider = [], max(src[index], tgt[index])
        batch, width = [*batch, index], wider
    assert [found.tolist() for found in batching.cut(src, tgt)] == [*batches, *([batch] if batch else [])]


@pytest.mark.parametrize("longest", [2**15 - 1, 2**15, 2**20])
def test_cut_sorts_very_long_sentences_too(longest: int) -> None:
    lengths = np.array([longest, 1, 7, longest - 1, 3])
    cut = Batching(tokens=1).cut(lengths[::-1].copy(), lengths)
    assert (
        np.concatenate(cut).tolist()
        == np.lexsort((np.where(lengths % 2, -lengths[::-1], lengths[::-1]), lengths)).tolist()
    )


@given(corpora())
def test_cut_is_a_function_of_the_lengths(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, batching = corpus
    once, again = batching.cut(src, tgt), batching.cut(src.copy(), tgt.copy())
    assert [batch.tolist() for batch in once] == [batch.tolist() for batch in again]


def test_a_sentence_beyond_the_budget_goes_alone() -> None:
    lengths = np.array([2, 50, 2])
    assert [batch.tolist() for batch in Batching(tokens=10).cut(lengths, lengths)] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("option", "value", "least"), [("tokens", 0, 1), ("sentences", 0, 1), ("max_length", 1, 2), ("num_workers", -1, 0)]
)
def test_options_out_of_range_are_refused(option: str, value: int, least: int) -> None:
    with pytest.raises(ConfigError, match=f"batching.{option} is {value}, expected at least {least}"):
        Batching(**{option: value})


def test_pad_puts_specials_around_the_ids() -> None:
    sentences = [np.array([7, 8, 9], dtype=np.uint16), np.array([], dtype=np.uint16)]
    assert pad(sentences).tolist() == [[7, 8, 9, EOS], [EOS, PAD, PAD, PAD]]
    assert pad(sentences, bos=True).tolist() == [[BOS, 7, 8, 9, EOS], [BOS, EOS, PAD, PAD, PAD]]


def test_padding_efficiency_counts_real_tokens() -> None:
    batches = [np.array([0, 1]), np.array([2])]
    assert padding_efficiency(batches, np.array([2, 4, 6])) == pytest.approx((2 + 4 + 6) / (4 + 4 + 6))
