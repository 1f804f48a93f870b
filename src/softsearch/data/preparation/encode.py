"""Encoding: lines to token ids, and the files that hold them."""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softsearch.text.tokenizer import Tokenizers

SIDES = ("src", "tgt")  # names of the files of each side
LINES = "lines"  # name of the file of line numbers
LINKS = "train.links"  # name of the files with word links in prepared data
Number = TypeVar("Number", bound=np.generic)
Tokens = tuple[NDArray[np.integer], NDArray[np.int32]]  # all ids concatenated, and the sentences' lengths


def encode_sides(tokenizers: Tokenizers, sides: tuple[Sequence[bytes], Sequence[bytes]]) -> tuple[Tokens, Tokens]:
    """Encodes source and target lines, in any process; it starts quickly because it does not need PyTorch."""
    src, tgt = (
        flat([tokenizer.encode(line.decode()) for line in side], tokenizer.vocab_size)
        for tokenizer, side in zip(tokenizers, sides, strict=True)
    )
    return src, tgt


def id_type(vocab_size: int) -> type[np.integer]:
    """Returns the smallest NumPy type that holds all ids."""
    return np.uint16 if vocab_size <= 2**16 else np.int32


def flat(sentences: Sequence[Sequence[int]], vocab_size: int) -> Tokens:
    """Concatenates the ids of sentences; returns them with their lengths."""
    lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
    return np.fromiter(chain.from_iterable(sentences), id_type(vocab_size), int(lengths.sum())), lengths


class TokenWriter:
    """Writes the files of one side of a split: all ids concatenated, and int64 offsets: 0 and each sentence's end.

    ``stack`` closes ``path.ids`` and ``path.offsets``.
    """

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._ids, self._offsets = (
            stack.enter_context(path.with_name(f"{path.name}.{kind}").open("wb")) for kind in ("ids", "offsets")
        )
        self.tokens = 0
        self._offsets.write(np.int64(0).tobytes())

    def append(self, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> None:
        """Writes the next sentences, as ``flat`` returns them."""
        self._ids.write(ids.tobytes())
        self._offsets.write((self.tokens + np.cumsum(lengths, dtype=np.int64)).tobytes())
        self.tokens += len(ids)


def read_array(path: Path, dtype: type[Number]) -> NDArray[Number]:
    """Maps a file of numbers into memory."""
    if not path.stat().st_size:
        return np.empty(0, dtype)  # an empty file cannot be mapped
    mapped: NDArray[Any] = np.memmap(path, dtype, "r")
    return mapped
