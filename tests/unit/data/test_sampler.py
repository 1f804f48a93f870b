"""Token-budget batches; their order is a pure function of the seed and the number of batches trained."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.app.config.validation import check
from softsearch.data import sampler as sampler_module
from softsearch.data.sampler import (
    Batching,
    BucketBatchSampler,
    Indices,
    Shard,
    count_tokens,
    divide,
    pairs_of_shard,
    sort_in_groups,
)
from softsearch.errors import ConfigError, CorpusError

Lengths = NDArray[np.int64]


@pytest.fixture(scope="module", autouse=True)
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler_module, "_BLOCK", 2)
        yield


@st.composite
def lengths_and_budgets(draw: st.DrawFn) -> tuple[Lengths, Lengths, Batching]:
    pairs = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=80))
    tokens = draw(st.integers(30, 200))
    sentences = draw(st.none() | st.integers(1, 10))
    src, tgt = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return src, tgt, Batching(tokens=tokens, sentences=sentences)


@given(lengths_and_budgets())
def test_cut_keeps_every_sentence_within_the_budget(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    assert sorted(np.concatenate([np.empty(0, int), *batches])) == list(range(len(src)))
    for batch in batches:
        assert len(batch) * max(src[batch].max(), tgt[batch].max()) <= batching.tokens
        assert batching.sentences is None or len(batch) <= batching.sentences


@given(lengths_and_budgets())
def test_cut_sorts_by_target_length_and_lets_source_length_rise_and_fall(
    corpus: tuple[Lengths, Lengths, Batching],
) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    order = [(tgt[i], src[i] if tgt[i] % 2 == 0 else -src[i]) for batch in batches for i in batch]
    assert order == sorted(order)


@given(lengths_and_budgets())
def test_cut_fills_each_batch(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, batching = corpus
    batches = batching.cut(src, tgt)
    for batch, after in pairwise(batches):
        widest = max(*src[[*batch, after[0]]], *tgt[[*batch, after[0]]])
        full = batching.sentences is not None and len(batch) == batching.sentences
        assert full or (len(batch) + 1) * widest > batching.tokens


@given(lengths_and_budgets())
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


@given(lengths_and_budgets())
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
    with pytest.raises(ConfigError, match=rf"batching\.{option} is {value} .*a whole number of at least {least}"):
        check({"_target_": "softsearch.data.Batching", option: value}, "batching")


def test_real_and_padded_tokens_are_counted() -> None:
    batches = [np.array([0, 1]), np.array([2])]
    assert count_tokens(batches, np.array([2, 4, 6])).tolist() == [2 + 4 + 6, 4 + 4 + 6]


SHARES = st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, 0.5, 0.5 + 2**-53, 1 - 2**-53])


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 2**20]), SHARES), max_size=30))
def test_sums_that_rounding_made_equal_are_sorted_by_their_values(pairs: list[tuple[int, float]]) -> None:
    groups, values = np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs])
    assert sort_in_groups(groups, values).tolist() == np.lexsort((values, groups)).tolist()


@dataclass
class Corpus:
    src: Lengths
    tgt: Lengths
    world_size: int
    shards: int = 1

    def shard(self, number: int = 0, seed: int = 1) -> tuple[Shard, Indices]:
        pairs = pairs_of_shard(len(self.src), number, self.shards)
        lengths = self.src[pairs], self.tgt[pairs]
        batches = Batching(tokens=40).cut(*lengths)
        return Shard(batches, *lengths, seed=(seed, number)[: self.shards], world_size=self.world_size), pairs

    def ranks(self, position: int = 0, seed: int = 1) -> list[BucketBatchSampler]:
        """The samplers of all processes, each having trained ``position`` batches."""
        make, sentences = partial(self.shard, seed=seed), len(self.src)
        return [
            BucketBatchSampler(make, self.shards, sentences, position=lambda: position, seed=seed, rank=rank)
            for rank in range(self.world_size)
        ]


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    world_size, shards = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    least = 2 * shards * world_size
    pairs = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=least, max_size=60))
    src, tgt = np.array(pairs, dtype=np.int64).T
    return Corpus(src, tgt, world_size, shards)


MANY = Corpus(np.arange(200) % 9 + 1, np.arange(200) % 7 + 1, 2)


@given(corpora(), st.integers(0, 3), st.integers(1, 70))
def test_the_plan_is_that_of_one_sort(corpus: Corpus, epoch: int, at_once: int) -> None:
    """As it was defined first: all sentences sorted by their group and a random number. Old runs resume by it."""
    corpus.shards = 1
    shard, _ = corpus.shard(seed=7)
    batches = divide(Batching(tokens=40).cut(corpus.src, corpus.tgt), corpus.world_size)
    order = np.concatenate(batches)
    same = (np.diff(corpus.src[order]) == 0) & (np.diff(corpus.tgt[order]) == 0)
    rng = np.random.default_rng((7, epoch))
    shuffled = order[np.lexsort((rng.random(len(order)), np.concatenate(([0], np.cumsum(~same)))))]
    parts = np.split(shuffled, np.cumsum([len(batch) for batch in batches])[:-1])
    world = corpus.world_size
    expected = [parts[turn * world + r] for turn in rng.permutation(len(parts) // world) for r in range(world)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler_module, "_CHUNK", at_once)
        plan = shard.plan(epoch)
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
    """Fault: batches that the processes cannot share equally.

    Effect: the largest are halved, so that all processes get the same number.
    """
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
        shard, pairs = corpus.shard()
        plan = [pairs[batch] for batch in shard.plan(epoch)]
        shapes.append(Counter((len(batch), corpus.src[batch].max(), corpus.tgt[batch].max()) for batch in plan))
    assert shapes[0] == shapes[1] == shapes[2]


def test_epochs_and_seeds_differ() -> None:
    plans = [[batch.tolist() for batch in MANY.shard(seed=s)[0].plan(e)] for s, e in ((1, 0), (1, 1), (2, 0))]
    assert plans[0] != plans[1]
    assert plans[0] != plans[2]
    assert {frozenset(b) for b in plans[0]} != {frozenset(b) for b in plans[1]}  # and not only the batches' order


def test_the_position_is_read_when_iteration_starts() -> None:
    position = 0
    corpus = Corpus(MANY.src, MANY.tgt, 1)
    sampler = BucketBatchSampler(corpus.shard, 1, 200, position=lambda: position, seed=1)
    first = list(sampler)
    position = len(sampler)
    second = [[draw - 200 for draw in batch] for batch in sampler]
    assert first != second
    assert {draw for batch in first for draw in batch} == {draw for batch in second for draw in batch}
    position = 0
    assert list(sampler) == first


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_no_step_of_several_batches_is_cut_at_the_end_of_an_epoch(window: int) -> None:
    rng = np.random.default_rng(0)
    corpus, position = Corpus(rng.integers(1, 9, 90), rng.integers(1, 9, 90), 1), 0
    sampler = BucketBatchSampler(corpus.shard, 1, 90, position=lambda: position, seed=1, window=window)
    (alone,) = corpus.ranks()
    epochs: list[list[int]] = []
    for position in range(0, sampler.epochs * len(alone), len(alone)):
        (alone,) = corpus.ranks(position)
        epochs += alone
    position = 0
    assert len(sampler) % window == 0
    assert len(sampler) == len(epochs)
    assert list(sampler) == epochs
    position = len(sampler) + 5
    assert len(list(sampler)) == len(sampler) - 5


def test_ranks_train_batches_of_similar_width_at_the_same_time() -> None:
    one, other = MANY.ranks()
    widths = [[int(MANY.tgt[batch].max()) for batch in sampler] for sampler in (one, other)]
    assert max(abs(a - b) for a, b in zip(*widths, strict=True)) <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 6))
def test_divide_keeps_the_sentences_in_order(sizes: list[int], world_size: int) -> None:
    batches = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    most = sum(sizes)  # batches, of one sentence each
    if len(sizes) % world_size and -(-len(sizes) // world_size) * world_size > most:
        with pytest.raises(CorpusError, match=f"{most} sentences in .* among {world_size} processes"):
            divide(batches, world_size)
        return
    divided = divide(batches, world_size)
    assert len(divided) % world_size == 0
    assert all(len(batch) for batch in divided)
    assert np.concatenate(divided).tolist() == list(range(sum(sizes)))


def test_fewer_sentences_than_processes_are_refused() -> None:
    with pytest.raises(CorpusError, match=r"1 sentences in 1 batches .* 2 processes.*trainer.devices"):
        Corpus(np.array([3]), np.array([3]), 2).ranks()


@given(st.integers(1, 60), st.integers(1, 5))
def test_shards_have_every_pair_once_from_all_over_the_corpus(pairs: int, shards: int) -> None:
    parts = [pairs_of_shard(pairs, number, shards) for number in range(shards)]
    assert sorted(np.concatenate(parts)) == list(range(pairs))
    assert all(set(np.diff(part).tolist()) <= {1, 2 * shards - 1} for part in parts)


def test_shards_follow_one_another_in_another_order_in_every_epoch() -> None:
    corpus = Corpus(MANY.src, MANY.tgt, 1, 3)
    of_pair = {int(pair): number for number in range(3) for pair in pairs_of_shard(200, number, 3)}
    orders = set()
    for epoch in range(9):
        length = len(corpus.ranks()[0])
        numbers = [of_pair[draw % 200] for batch in corpus.ranks(epoch * length)[0] for draw in batch]
        orders.add(tuple(dict.fromkeys(numbers)))
        assert sum(a != b for a, b in pairwise(numbers)) == 2
    assert len(orders) > 2


@given(lengths_and_budgets())
def test_static_shapes_are_few_and_hold_every_batch(corpus: tuple[Lengths, Lengths, Batching]) -> None:
    src, tgt, exact = corpus
    batching = replace(exact, static_shapes=True)
    batches = batching.cut(src, tgt)
    assert sorted(np.concatenate([np.empty(0, int), *batches])) == list(range(len(src)))
    shapes: dict[tuple[int, int], set[int]] = {}
    for batch in batches:
        found = (len(batch), int(src[batch].max()), int(tgt[batch].max()))
        sentences, *lengths = batching.shape(*found)
        assert all(map(int.__ge__, (sentences, *lengths), found))
        assert sentences * max(lengths) <= batching.tokens
        assert all(length in (8, 16, 24, 32, batching.tokens) for length in lengths)
        shapes.setdefault((lengths[0], lengths[1]), set()).add(sentences)
    assert all(len(numbers) == 1 for numbers in shapes.values())


def test_static_shapes_of_long_sentences_and_of_batches_over_the_budget() -> None:
    shape = Batching(tokens=1000, static_shapes=True).shape
    assert [shape(2, length, 1)[1:] for length in (64, 65, 128, 129, 256, 257, 999, 1001)] == [
        (length, 8) for length in (64, 80, 128, 160, 256, 320, 1000, 1001)
    ]
    assert shape(40, 24, 24) == (41, 24, 24)
    assert shape(42, 24, 24) == (48, 24, 24)  # sampling made sentences longer than they were when batches were cut
