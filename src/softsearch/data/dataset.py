"""Token ids on disk: written once, memory-mapped ever after."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.batch import Batch, pad
from softsearch.data.resampler import Resampler


class TokenStore:
    """The token ids of many sentences in two files: all ids in one row, and where each sentence begins."""

    def __init__(self, path: Path) -> None:
        self.offsets: NDArray[np.int64] = np.load(f"{path}.offsets.npy", mmap_mode="r")
        self.ids: NDArray[np.integer] = np.load(f"{path}.ids.npy", mmap_mode="r")

    @staticmethod
    def write(path: Path, sentences: Iterable[Sequence[int]], vocab_size: int) -> None:
        """Writes sentences to ``path.ids.npy`` and ``path.offsets.npy``."""
        dtype = np.uint16 if vocab_size <= 2**16 else np.int32
        arrays = [np.asarray(sentence, dtype=dtype) for sentence in sentences]
        np.save(f"{path}.offsets.npy", np.cumsum([0, *map(len, arrays)], dtype=np.int64))
        np.save(f"{path}.ids.npy", np.concatenate([np.empty(0, dtype), *arrays]))

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.integer]:
        """Ids of a sentence, without specials."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence, EOS included."""
        lengths: NDArray[np.int64] = np.diff(self.offsets) + 1
        return lengths


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
