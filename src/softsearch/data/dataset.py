"""Token ids on disk: written once, memory-mapped ever after."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.batch import Batch, pad
from softsearch.data.resampler import Resampler


class TokenStore:
    """The token ids of many sentences in two files: all ids in one row, and where each sentence begins.

    Args:
        path: of the files that :func:`softsearch.data.preparation.npy_writer.token_writer` has written.
        rows: the sentences that there are, by their places in the files, in any order and any number of times.
    """

    def __init__(self, path: Path, rows: NDArray[np.integer] | None = None) -> None:
        self.offsets: NDArray[np.int64] = np.load(f"{path}.offsets.npy", mmap_mode="r")
        self.ids: NDArray[np.integer] = np.load(f"{path}.ids.npy", mmap_mode="r")
        self.rows = rows

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.offsets) - 1 if self.rows is None else len(self.rows)

    def __getitem__(self, index: int) -> NDArray[np.integer]:
        """Ids of a sentence, without specials."""
        row = index if self.rows is None else int(self.rows[index])
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def lengths(self) -> NDArray[np.int32]:
        """Tokens of each sentence, EOS included."""
        # Computed in 32 bits, which the offsets may exceed and no difference of two does: without a copy in 64.
        lengths = np.subtract(self.offsets[1:], self.offsets[:-1], dtype=np.int32, casting="unsafe")
        lengths += 1
        return lengths if self.rows is None else lengths[self.rows]


class ParallelDataset:
    """Sentence pairs as token ids; an item is a whole :class:`Batch`, asked for by its list of draws.

    A draw is a pair at an epoch, ``epoch * len(dataset) + index``: the index itself in epoch 0.

    Args:
        src: the source side.
        tgt: the target side.
        resampler: what segments the text afresh at each epoch, if anything does.
    """

    def __init__(self, src: TokenStore, tgt: TokenStore, resampler: Resampler | None = None) -> None:
        self.src, self.tgt, self.resampler = src, tgt, resampler

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.src)

    def __getitems__(self, draws: list[int]) -> Batch:
        """The pairs of ``draws`` as one padded batch (PyTorch's loader calls this with a sampler's batch)."""
        pairs = [(self.src[draw % len(self)], self.tgt[draw % len(self)]) for draw in draws]
        if self.resampler is not None:
            pairs = self.resampler(draws, pairs)
        src, tgt = zip(*pairs, strict=True)
        return Batch(pad(src), pad(tgt, bos=True))
