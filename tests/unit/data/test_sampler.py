"""The order of training batches is a pure function of the seed and the number of batches trained."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.data import sampler as sampler_module
from softsearch.data.batch import Batching
from softsearch.data.sampler import BucketBatchSampler, divide
from softsearch.errors import CorpusError

Lengths = NDArray[np.int64]


@dataclass
class Corpus:
    src: Lengths
    tgt: Lengths
    world_size: int

    def ranks(self, position: int = 0, seed: int = 1) -> list[BucketBatchSampler]:
        """The samplers of all processes, each having trained ``position`` batches."""
        batches = Batching(tokens=40).cut(self.src, self.tgt)
        return [
            BucketBatchSampler(
                batches,
                self.src,
                self.tgt,
                position=lambda: position,
                seed=seed,
                rank=rank,
                world_size=self.world_size,
            )
            for rank in range(self.world_size)
        ]


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    world_size = draw(st.integers(1, 4))
    pairs = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=world_size, max_size=60))
    src, tgt = np.array(pairs, dtype=np.int64).T
    return Corpus(src, tgt, world_size)


MANY = Corpus(np.arange(200) % 9 + 1, np.arange(200) % 7 + 1, 2)


@given(corpora(), st.integers(0, 3), st.integers(1, 70))
def test_the_plan_is_that_of_one_sort(corpus: Corpus, epoch: int, at_once: int) -> None:
    """As it was defined first: all sentences sorted by their group and a random number. Old runs resume by it."""
    sampler = corpus.ranks(seed=7)[0]
    batches = divide(Batching(tokens=40).cut(corpus.src, corpus.tgt), corpus.world_size)
    order = np.concatenate(batches)
    same = (np.diff(corpus.src[order]) == 0) & (np.diff(corpus.tgt[order]) == 0)
    rng = np.random.default_rng((7, epoch))
    shuffled = order[np.lexsort((rng.random(len(order)), np.concatenate(([0], np.cumsum(~same)))))]
    parts = np.split(shuffled, np.cumsum([len(batch) for batch in batches])[:-1])
    world = corpus.world_size
    expected = [parts[turn * world + r] for turn in rng.permutation(len(sampler)) for r in range(world)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler_module, "_AT_ONCE", at_once)
        plan = sampler.plan(epoch)
    assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in expected]


def test_draws_of_late_epochs_exceed_32_bits() -> None:
    corpus, length = MANY, len(MANY.ranks()[0])
    epoch = 2**31 // 200 + 5
    draws = [draw for sampler in corpus.ranks(epoch * length) for batch in sampler for draw in batch]
    assert sorted(draws) == list(range(epoch * 200, (epoch + 1) * 200))


@given(corpora(), st.integers(0, 3))
def test_every_sentence_once_an_epoch_over_all_ranks(corpus: Corpus, epoch: int) -> None:
    length = len(corpus.ranks()[0])
    seen = Counter(draw for sampler in corpus.ranks(epoch * length) for batch in sampler for draw in batch)
    sentences = len(corpus.src)
    assert seen == Counter(range(epoch * sentences, (epoch + 1) * sentences))


@given(corpora(), st.integers(0, 3))
def test_every_rank_gets_the_same_number_of_batches_in_every_epoch(corpus: Corpus, epoch: int) -> None:
    length = len(corpus.ranks()[0])
    assert {len(list(sampler)) for sampler in corpus.ranks(epoch * length)} == {length}
    assert {len(sampler) for sampler in corpus.ranks()} == {length}


@given(corpora(), st.data())
def test_resumed_anywhere_it_yields_exactly_the_rest(corpus: Corpus, data: st.DataObject) -> None:
    length = len(corpus.ranks()[0])
    epoch, start = data.draw(st.integers(0, 2)), data.draw(st.integers(0, length - 1))
    whole = [list(sampler) for sampler in corpus.ranks(epoch * length)]
    rest = [list(sampler) for sampler in corpus.ranks(epoch * length + start)]
    assert rest == [batches[start:] for batches in whole]


@given(corpora())
def test_batches_keep_their_shapes(corpus: Corpus) -> None:
    """Sentences of the same lengths trade places, so an epoch's padding is that of every other."""
    shapes = []
    for epoch in range(3):
        plan = corpus.ranks()[0].plan(epoch)
        shapes.append(Counter((len(batch), corpus.src[batch].max(), corpus.tgt[batch].max()) for batch in plan))
    assert shapes[0] == shapes[1] == shapes[2]


def test_epochs_and_seeds_differ() -> None:
    plans = [[batch.tolist() for batch in MANY.ranks(seed=s)[0].plan(e)] for s, e in ((1, 0), (1, 1), (2, 0))]
    assert plans[0] != plans[1]
    assert plans[0] != plans[2]
    assert {frozenset(b) for b in plans[0]} != {frozenset(b) for b in plans[1]}  # and not only the batches' order


def test_the_position_is_read_when_iteration_starts() -> None:
    position = 0
    sampler = BucketBatchSampler(
        Batching(tokens=40).cut(MANY.src, MANY.tgt), MANY.src, MANY.tgt, position=lambda: position, seed=1
    )
    first = list(sampler)
    position = len(sampler)
    second = [[draw - 200 for draw in batch] for batch in sampler]
    assert first != second
    assert {draw for batch in first for draw in batch} == {draw for batch in second for draw in batch}
    position = 0
    assert list(sampler) == first


def test_ranks_train_batches_of_similar_width_at_the_same_time() -> None:
    one, other = MANY.ranks()
    widths = [[int(MANY.tgt[batch].max()) for batch in sampler] for sampler in (one, other)]
    assert max(abs(a - b) for a, b in zip(*widths, strict=True)) <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 6))
def test_divide_keeps_the_sentences_in_order(sizes: list[int], world_size: int) -> None:
    batches = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    most = sum(sizes)  # batches, of one sentence each
    if len(sizes) % world_size and -(-len(sizes) // world_size) * world_size > most:
        with pytest.raises(CorpusError, match=f"{most} training sentences in .* among {world_size} processes"):
            divide(batches, world_size)
        return
    divided = divide(batches, world_size)
    assert len(divided) % world_size == 0
    assert all(len(batch) for batch in divided)
    assert np.concatenate(divided).tolist() == list(range(sum(sizes)))


def test_fewer_sentences_than_processes_are_refused() -> None:
    with pytest.raises(CorpusError, match=r"1 training sentences in 1 batches .* 2 processes.*trainer.devices"):
        Corpus(np.array([3]), np.array([3]), 2).ranks()
