"""Batches: how sentences are grouped, padded and handed to the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.errors import ConfigError
from softsearch.ranges import Range
from softsearch.text.vocabulary import BOS, EOS, PAD

Indices = NDArray[np.integer]


class Batch(NamedTuple):
    """Padded sentence pairs."""

    src_tokens: Tensor  # [batch, src_len] int64, EOS at the end
    tgt_tokens: Tensor  # [batch, tgt_len + 1] int64, BOS at the start, EOS at the end


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How sentences are grouped into batches of similar length.

    Args:
        tokens: most tokens on either side of a batch, padding included.
        sentences: most sentences in a batch; no limit by default.
        max_length: training pairs with more tokens than this on a side, EOS included, are left out and counted.
        num_workers: processes that collate batches; 0 does it in the training process, which is enough for most runs.

    Raises:
        ConfigError: a value is out of range.
    """

    tokens: int = 4096
    sentences: int | None = None
    max_length: int | None = None
    num_workers: Annotated[int, Range(0, 1024)] = 0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name, least in (("tokens", 1), ("sentences", 1), ("max_length", 2), ("num_workers", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"batching.{name} is {value}, expected at least {least}; change batching.{name}")

    def cut(self, src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]) -> list[Indices]:
        """Sorts sentences by (target, source) length and cuts the row where a budget is full.

        Source lengths rise and fall in turn, as a snake, so that a batch that spans two target lengths has sources of
        similar length too.

        Returns:
            Indices of each batch; target lengths never fall from one batch to the next.
        """
        order = _snake(src_lengths, tgt_lengths)
        longest = np.maximum(src_lengths, tgt_lengths)[order]
        changes = [0, *(np.flatnonzero(np.diff(longest)) + 1).tolist(), len(order)]  # sentences of a length are a run
        most = len(order) if self.sentences is None else self.sentences
        cuts, width = [0], 0
        for place, end in pairwise(changes):
            while place < end:
                wider = max(width, int(longest[place]))
                room = cuts[-1] + min(self.tokens // wider, most) - place
                if room <= 0 and place > cuts[-1]:
                    cuts.append(place)
                    width = 0
                else:  # one that is over the budget by itself goes alone
                    place, width = min(end, place + max(room, 1)), wider
        return [order[begin:end] for begin, end in pairwise([*cuts, len(order)])] if len(order) else []


def _snake(src_lengths: NDArray[np.integer], tgt_lengths: NDArray[np.integer]) -> Indices:
    """The order of sentences by target length, and for even ones by rising, for odd by falling source length."""
    small = max(int(src_lengths.max(initial=0)), int(tgt_lengths.max(initial=0))) < 2**15
    dtype = np.int16 if small else np.int64  # 16 bits are sorted by counting: ten times as fast
    src, tgt = src_lengths.astype(dtype), tgt_lengths.astype(dtype)
    np.negative(src, out=src, where=tgt % 2 == 1)
    order = np.lexsort((src, tgt))
    return order.astype(np.int32) if len(order) < 2**31 else order


def pad(sentences: Sequence[NDArray[np.integer]], *, bos: bool = False) -> Tensor:
    """Token ids without specials -> ``[batch, len]`` int64 with EOS (and BOS), padded on the right."""
    first = int(bos)
    width = max(map(len, sentences)) + 1 + first
    padded = np.full((len(sentences), width), PAD, dtype=np.int64)
    if bos:
        padded[:, 0] = BOS
    for row, sentence in zip(padded, sentences, strict=True):
        row[first : first + len(sentence)] = sentence
        row[first + len(sentence)] = EOS
    return torch.from_numpy(padded)


def padding_efficiency(batches: Sequence[Indices], lengths: NDArray[np.integer]) -> float:
    """Share of real tokens among all tokens of the padded batches, one side."""
    sizes = np.array([len(batch) for batch in batches])
    sorted_lengths = lengths[np.concatenate(batches)]
    widest = np.maximum.reduceat(sorted_lengths, np.cumsum(sizes) - sizes)
    return float(sorted_lengths.sum(dtype=np.int64) / (sizes * widest).sum())
