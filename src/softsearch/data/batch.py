"""Batches: how sentences are grouped, padded and handed to the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.errors import ConfigError
from softsearch.text.vocabulary import BOS, EOS, PAD


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
    num_workers: int = 0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name, least in (("tokens", 1), ("sentences", 1), ("max_length", 2), ("num_workers", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"batching.{name} is {value}, expected at least {least}; change batching.{name}")

    def cut(self, src_lengths: NDArray[np.int64], tgt_lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Sorts sentences by (target, source) length and cuts the row where a budget is full.

        Source lengths rise and fall in turn, as a snake, so that a batch that spans two target lengths has sources of
        similar length too.

        Returns:
            Indices of each batch; target lengths never fall from one batch to the next.
        """
        order = np.lexsort((np.where(tgt_lengths % 2 == 0, src_lengths, -src_lengths), tgt_lengths))
        longest = np.maximum(src_lengths, tgt_lengths)[order]
        most = len(order) if self.sentences is None else self.sentences
        batches, begin, width = [], 0, 0
        for end, length in enumerate(longest.tolist()):
            wider = max(width, length)
            if end > begin and ((end - begin + 1) * wider > self.tokens or end - begin >= most):
                batches.append(order[begin:end])
                begin, wider = end, length
            width = wider
        if len(order):
            batches.append(order[begin:])
        return batches


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


def padding_efficiency(batches: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64]) -> float:
    """Share of real tokens among all tokens of the padded batches, one side."""
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return float(sum(int(lengths[batch].sum()) for batch in batches) / padded)
