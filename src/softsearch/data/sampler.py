"""Token-budget batches, and their order: a pure function of seed and batches trained, so that any run can resume."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError, CorpusError
from softsearch.ranges import AtLeastOne, Range

_CHUNK = 1 << 20  # sentences shuffled together
_SHARD = 1 << 24  # pairs planned together
_BLOCK = 1 << 12  # neighbouring pairs of a shard
_STEP = 8  # between rounded lengths
Indices = NDArray[np.integer]


@dataclass(frozen=True, kw_only=True)
class Batching:
    """Batches of sentences of similar length within a budget of tokens.

    Args:
        tokens: maximum tokens on either side of a batch, padding included; sampled segmentations and noise may take
            twice as many.
        sentences: maximum sentences in a batch; no limit by default.
        max_length: maximum tokens on a side of a training pair, EOS included; longer pairs are dropped and counted.
        batches: train on only this number of batches, of evenly spaced lengths; on all by default.
        num_workers: processes that make batches; 0 makes them in the training process, which is fast enough for most
            runs.
        static_shapes: round lengths to steps of 8, or more beyond 64, so that batches are padded to few shapes.
        canonical: the number of processes that the order of batches is made for. Any divisor of it may train: each step
            has the same batches, so that a run resumes with more or fewer processes. By default those of the run.
    """

    tokens: AtLeastOne = 4096
    sentences: AtLeastOne | None = None
    max_length: Annotated[int, Range(2)] | None = None
    batches: AtLeastOne | None = None
    num_workers: Annotated[int, Range(0, 1024)] = 0
    static_shapes: bool = False
    canonical: AtLeastOne | None = None

    def share(self, processes: int) -> int:
        """The number of canonical processes for which each of ``processes`` trains.

        Raises:
            ConfigError: it is not whole.
        """
        if self.canonical is None:
            return 1
        if self.canonical % processes:
            divisors = ", ".join(str(n) for n in range(1, self.canonical + 1) if not self.canonical % n)
            raise ConfigError(
                f"{processes} processes cannot share batching.canonical={self.canonical} equally; train with one of "
                f"{divisors} (trainer.devices times trainer.num_nodes)"
            )
        return self.canonical // processes

    def shape(self, sentences: int, src_len: int, tgt_len: int) -> tuple[int, int, int]:
        """The static shape of a batch: rounded lengths, and the number of sentences in a full batch of them."""
        src_len, tgt_len = self._rounded(np.array([src_len, tgt_len])).tolist()
        full = self.tokens // max(src_len, tgt_len)
        full = full if self.sentences is None else min(full, self.sentences)
        return (full if sentences <= full else -(-sentences // _STEP) * _STEP), src_len, tgt_len

    def _rounded(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Lengths in steps of 8 up to 64, of 16 up to 128, and so on, within the budget."""
        steps = np.maximum(_STEP, 2 ** (np.ceil(np.log2(lengths)).astype(np.int64) - 3).clip(0))
        return np.maximum(lengths, np.minimum(-(-lengths // steps) * steps, self.tokens))

    def subset(self, batches: list[Indices]) -> list[Indices]:
        """Returns the batches to train on."""
        if self.batches is None or self.batches >= len(batches):
            return batches
        places = np.linspace(0, len(batches), self.batches, endpoint=False) + len(batches) / self.batches / 2
        return [batches[int(place)] for place in places]

    def cut(self, src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]) -> list[Indices]:
        """Sorts sentences by (target, source) length and cuts the sequence where the budget is full.

        Source lengths rise and fall alternately, so a batch that spans two target lengths has similar source lengths.

        Returns:
            The indices of each batch; target lengths never decrease from one batch to the next.
        """
        if self.static_shapes:
            src_lengths, tgt_lengths = self._rounded(src_lengths), self._rounded(tgt_lengths)
        order = _alternating_sort(src_lengths, tgt_lengths)
        longest = np.maximum(src_lengths, tgt_lengths)[order]
        changes = [0, *(np.flatnonzero(np.diff(longest)) + 1).tolist(), len(order)]  # bounds of runs of equal length
        most = len(order) if self.sentences is None else self.sentences
        cuts, width = [0], 0
        for index, end in pairwise(changes):
            while index < end:
                wider = max(width, int(longest[index]))
                room = cuts[-1] + min(self.tokens // wider, most) - index
                if room <= 0 and index > cuts[-1]:
                    cuts.append(index)
                    width = 0
                else:  # a sentence over the budget gets its own batch
                    index, width = min(end, index + max(room, 1)), wider
        return [order[begin:end] for begin, end in pairwise([*cuts, len(order)])] if len(order) else []


def _alternating_sort(src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]) -> Indices:
    """Sorts by target length, then by source length: ascending for even target lengths, descending for odd."""
    small = max(int(src_lengths.max(initial=0)), int(tgt_lengths.max(initial=0))) < 2**15
    dtype = np.int16 if small else np.int64  # 16-bit integers are sorted by counting: ten times as fast
    src, tgt = src_lengths.astype(dtype), tgt_lengths.astype(dtype)
    np.negative(src, out=src, where=tgt % 2 == 1)
    order = np.lexsort((src, tgt))
    return order.astype(np.int32) if len(order) < 2**31 else order


def count_tokens(batches: Sequence[Indices], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Counts one side's tokens in padded batches, whose sentences have these lengths: real ones, and all."""
    sizes = np.array([len(batch) for batch in batches])
    widest = np.maximum.reduceat(lengths, np.cumsum(sizes) - sizes)
    return np.array([lengths.sum(dtype=np.int64), (sizes * widest).sum()])


def shards_of(pairs: int) -> int:
    """The number of shards of a corpus, of which only one's order is in memory at a time."""
    return max(1, -(-pairs // _SHARD))


def pairs_of_shard(pairs: int, number: int, shards: int) -> Indices:
    """The pairs of a shard: blocks from the whole corpus, which may be several concatenated corpora."""
    dtype = np.int32 if pairs < 2**31 - _BLOCK else np.int64
    starts: Indices = np.arange(number * _BLOCK, pairs, shards * _BLOCK, dtype=dtype)
    found: Indices = np.add.outer(starts, np.arange(_BLOCK, dtype=dtype)).ravel()
    return found[: np.searchsorted(found, pairs)]


class ShardRows:
    """The rows that pairs have in the files of all shards, one after another.

    Args:
        sizes: number of pairs of each shard.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._begins, self._pairs = np.cumsum([0, *sizes[:-1]]), sum(sizes)

    def __len__(self) -> int:
        """Number of pairs."""
        return self._pairs

    def __getitem__(self, pairs: int | Indices) -> NDArray[np.int64]:
        """Returns the rows of one or several pairs; the inverse of ``pairs_of_shard``."""
        block, place = np.divmod(pairs, _BLOCK)
        turn, shard = np.divmod(block, len(self._begins))
        return np.asarray(self._begins[shard] + turn.astype(np.int64) * _BLOCK + place)


def divide(batches: Sequence[Indices], world_size: int) -> list[Indices]:
    """Halves the largest batches until their number is divisible by ``world_size``: nothing is dropped or repeated.

    Raises:
        CorpusError: nearly all batches have only one sentence.
    """
    batches = list(batches)
    while len(batches) % world_size:
        largest = max(range(len(batches)), key=lambda i: len(batches[i]))
        batch = batches[largest]
        if len(batch) < 2:
            sentences = sum(map(len, batches))
            raise CorpusError(
                f"{sentences} sentences in {len(batches)} batches cannot be shared equally among {world_size} "
                "processes; use fewer devices (trainer.devices, batching.canonical), more data or larger batches "
                "(batching)"
            )
        half = len(batch) // 2
        batches[largest : largest + 1] = [batch[:half], batch[half:]]
    return batches


def sort_in_groups(groups: NDArray[np.unsignedinteger], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Returns ``np.lexsort((values, groups))``, twice as fast, for integers and values from 0 to 1, 1 excluded."""
    keys = groups + values
    order = np.argsort(keys)
    keys = keys[order]
    if np.any(keys[1:] == keys[:-1]):  # the sums were rounded, so that the values must decide
        return np.lexsort((values, groups))
    return order


class Shard:
    """Some or all pairs of a corpus, as batches whose shapes are the same in every epoch, in different orders.

    Sentences of equal lengths trade places. The ranks take neighbouring batches at the same time, whose sizes are
    similar, so that none waits long for another.

    Args:
        batches: batches from ``Batching.cut``, in order of length.
        src_lengths: [pairs] source lengths of these batches' sentences.
        tgt_lengths: [pairs] target lengths of these batches' sentences.
        seed: determines the order, with the epoch.
        world_size: ranks, or canonical ones.
    """

    def __init__(
        self,
        batches: Sequence[Indices],
        src_lengths: NDArray[np.integer],
        tgt_lengths: NDArray[np.integer],
        *,
        seed: tuple[int, ...],
        world_size: int = 1,
    ) -> None:
        self.order = np.concatenate(batches)
        src, tgt = src_lengths[self.order], tgt_lengths[self.order]
        self.tokens = np.array([count_tokens(batches, lengths) for lengths in (src, tgt)])
        self.batches = divide(batches, world_size)
        self.bounds = np.cumsum([len(batch) for batch in self.batches])[:-1]
        other = np.diff(src) != 0
        other |= np.diff(tgt) != 0
        self.groups = np.array([0, *(np.flatnonzero(other) + 1), len(self.order)])  # starts of groups of equal lengths
        self.seed, self.world_size = seed, world_size

    def plan(self, epoch: int) -> list[Indices]:
        """Returns the batches of all ranks in an epoch; rank r takes every ``world_size``-th, starting with r."""
        rng = np.random.default_rng((*self.seed, epoch))
        shuffled = np.empty_like(self.order)
        for groups in self._blocks():
            begin, end = int(groups[0]), int(groups[-1])
            group = np.repeat(np.arange(len(groups) - 1, dtype=np.min_scalar_type(len(groups))), np.diff(groups))
            shuffled[begin:end] = self.order[begin:end][sort_in_groups(group, rng.random(end - begin))]
        batches = np.split(shuffled, self.bounds)
        turns = rng.permutation(len(batches) // self.world_size)
        return [batches[turn * self.world_size + rank] for turn in turns for rank in range(self.world_size)]

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yields bounds of neighbouring groups, about a million sentences at a time, to sort in little memory."""
        ends = np.searchsorted(self.groups, np.arange(_CHUNK, len(self.order), _CHUNK))
        for first, last in pairwise(np.unique([0, *ends, len(self.groups) - 1])):
            yield self.groups[first : last + 1]


class BucketBatchSampler:
    """Yields this rank's remaining batches in the current epoch, as lists of draws.

    A draw is ``epoch * sentences + index``, so that a pair can have a different segmentation in each epoch. The order
    of shards changes with each epoch; only one at a time is in memory.

    Args:
        make: makes a shard, given its number, and returns it with the corpus index of each of its sentences.
        outline: makes a shard with batches of the same sizes from less data; by default ``make`` is used.
        turn: is called with the number of each shard in its turn, and that of the following one.
        sentences: number of sentences in the corpus.
        position: returns the number of batches that this rank has trained in the whole run.
        window: batches per optimizer step; epochs are joined until no step is cut at an end.
        share: canonical ranks for which this one trains (``Batching.share``).
    """

    def __init__(
        self,
        make: Callable[[int], tuple[Shard, Indices]],
        shards: int,
        sentences: int,
        *,
        position: Callable[[], int],
        seed: int,
        rank: int = 0,
        window: int = 1,
        share: int = 1,
        outline: Callable[[int], Shard] | None = None,
        turn: Callable[[int, int], object] | None = None,
    ) -> None:
        self._shard, self._turn = lru_cache(1)(make), turn
        self.sentences, self.position, self.seed, self.rank, self.share = sentences, position, seed, rank, share
        self.sizes, self.pairs = list[int](), 0
        self.tokens = np.zeros((2, 2), dtype=np.int64)  # by side: real tokens, and all with padding
        for number in range(shards):
            shard = self._shard(number)[0] if outline is None else outline(number)
            self.sizes.append(len(shard.batches) // shard.world_size * share)
            self.pairs += len(shard.order)
            self.tokens += shard.tokens
        self.epoch = sum(self.sizes)  # batches per rank, equal on all ranks and in all epochs
        self.epochs = window // math.gcd(window, self.epoch)

    def __len__(self) -> int:
        """Number of batches per rank in the joined epochs."""
        return self.epoch * self.epochs

    def __iter__(self) -> Iterator[list[int]]:
        """Yields the rest of the current epoch, and of those joined with it."""
        epoch, start = divmod(self.position(), self.epoch)
        for number in range(epoch, epoch - epoch % self.epochs + self.epochs):
            yield from self._remaining(number, start if number == epoch else 0)

    def _remaining(self, epoch: int, start: int) -> Iterator[list[int]]:
        for number, following in pairwise([*self._order(epoch), self._order(epoch + 1)[0]]):
            if start < self.sizes[number]:
                shard, pairs = self._shard(number)
                if self._turn is not None:
                    self._turn(number, following)
                for batch in shard.plan(epoch)[self.rank :: shard.world_size // self.share][start:]:
                    yield (pairs[batch].astype(np.int64) + epoch * self.sentences).tolist()
            start = max(0, start - self.sizes[number])

    def _order(self, epoch: int) -> list[int]:
        """Returns the numbers of the shards in the order of an epoch."""
        order: list[int] = np.random.default_rng((self.seed, epoch)).permutation(len(self.sizes)).tolist()
        return order
