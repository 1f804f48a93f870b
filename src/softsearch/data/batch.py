"""A batch of padded sentence pairs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.text.vocabulary import BOS, EOS, PAD


class Batch(NamedTuple):
    """Padded sentence pairs."""

    src_tokens: Tensor  # [batch, src_len] int64, EOS at the end
    tgt_tokens: Tensor  # [batch, tgt_len + 1] int64, BOS at the start, EOS at the end


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
