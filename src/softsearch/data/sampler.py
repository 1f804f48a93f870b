"""The order of training batches: a pure function of (seed, batches trained so far), so that any run can be resumed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from softsearch.data.batch import Indices
from softsearch.errors import CorpusError

_AT_ONCE = 1 << 20  # sentences shuffled together


def divide(batches: Sequence[Indices], world_size: int) -> list[Indices]:
    """Halves the largest batches until their number divides by ``world_size``: no sentence is dropped or repeated.

    Raises:
        CorpusError: that cannot be, for nearly all batches have one sentence.
    """
    batches = list(batches)
    while len(batches) % world_size:
        largest = max(range(len(batches)), key=lambda i: len(batches[i]))
        batch = batches[largest]
        if len(batch) < 2:
            sentences = sum(map(len, batches))
            raise CorpusError(
                f"{sentences} training sentences in {len(batches)} batches cannot be shared equally among {world_size} "
                "processes; use fewer devices (trainer.devices), more data or larger batches (batching)"
            )
        half = len(batch) // 2
        batches[largest : largest + 1] = [batch[:half], batch[half:]]
    return batches


class BucketBatchSampler:
    """Yields this rank's batches of the running epoch, from wherever training stands, as lists of draws.

    A draw is ``epoch * sentences + index``: whoever gets it needs to know nothing else to make a fresh epoch of it.

    Each epoch has the same batch shapes in a fresh order; sentences of equal lengths trade places. The ranks take
    neighbouring batches at the same time, which are of similar size, so that none waits long for another.

    Args:
        batches: the batches of :meth:`Batching.cut`, in order of length.
        src_lengths: of all sentences.
        tgt_lengths: of all sentences.
        position: tells how many batches this rank has trained so far in the whole run.
        seed: of the order.
        rank: of this process.
        world_size: number of processes.
    """

    def __init__(
        self,
        batches: Sequence[Indices],
        src_lengths: NDArray[np.integer],
        tgt_lengths: NDArray[np.integer],
        *,
        position: Callable[[], int],
        seed: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.sentences = len(src_lengths)
        self.batches = divide(batches, world_size)
        self.order = np.concatenate(self.batches)
        self.bounds = np.cumsum([len(batch) for batch in self.batches])[:-1]
        other = np.diff(src_lengths[self.order]) != 0
        other |= np.diff(tgt_lengths[self.order]) != 0
        self.groups = np.array([0, *(np.flatnonzero(other) + 1), len(self.order)])  # begins of equal pairs of lengths
        self.position, self.seed, self.rank, self.world_size = position, seed, rank, world_size

    def __len__(self) -> int:
        """Batches of one epoch for each rank; the same on all ranks and in all epochs."""
        return len(self.batches) // self.world_size

    def plan(self, epoch: int) -> list[Indices]:
        """All ranks' batches of an epoch; rank r takes every ``world_size``-th from r on."""
        rng = np.random.default_rng((self.seed, epoch))
        shuffled = np.empty_like(self.order)
        for groups in self._stretches():
            begin, end = int(groups[0]), int(groups[-1])
            group = np.repeat(np.arange(len(groups) - 1, dtype=np.min_scalar_type(len(groups))), np.diff(groups))
            shuffled[begin:end] = self.order[begin:end][np.lexsort((rng.random(end - begin), group))]
        batches = np.split(shuffled, self.bounds)
        turns = rng.permutation(len(self))
        return [batches[turn * self.world_size + rank] for turn in turns for rank in range(self.world_size)]

    def __iter__(self) -> Iterator[list[int]]:
        """The rest of the running epoch."""
        epoch, start = divmod(self.position(), len(self))
        for batch in self.plan(epoch)[self.rank :: self.world_size][start:]:
            yield (batch.astype(np.int64) + epoch * self.sentences).tolist()

    def _stretches(self) -> Iterator[NDArray[np.int64]]:
        """The bounds of neighbouring groups, of about a million sentences together, which bounds what sorting needs."""
        ends = np.searchsorted(self.groups, np.arange(_AT_ONCE, len(self.order), _AT_ONCE))
        for first, last in pairwise(np.unique([0, *ends, len(self.groups) - 1])):
            yield self.groups[first : last + 1]
