"""Sentence pairs as token ids, memory-mapped from disk."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.batch import Batch, pad
from softsearch.data.preparation.encode import read_array
from softsearch.data.resampler import Resampler


class TokenStore:
    """The token ids of many sentences.

    Args:
        path: of the files, as :class:`softsearch.data.preparation.encode.TokenWriter` got it.
        dtype: of the ids.
        rows: sentences of the files in any order, any number of times; by default each once.
    """

    def __init__(self, path: Path, dtype: type[np.integer], rows: NDArray[np.integer] | None = None) -> None:
        self.offsets = read_array(Path(f"{path}.offsets"), np.int64)
        self.ids = read_array(Path(f"{path}.ids"), dtype)
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
        # In 32 bits, without a copy in 64: offsets may exceed them, differences of two do not.
        lengths = np.subtract(self.offsets[1:], self.offsets[:-1], dtype=np.int32, casting="unsafe")
        lengths += 1
        return lengths if self.rows is None else lengths[self.rows]


class ParallelDataset:
    """Sentence pairs as token ids; an item is a whole :class:`Batch`, asked for by its list of draws.

    A draw is a pair at an epoch, ``epoch * len(dataset) + index``: the index itself in epoch 0. A ``resampler`` draws
    new segmentations at each epoch.
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
