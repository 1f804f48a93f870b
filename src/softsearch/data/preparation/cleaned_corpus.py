"""Cleaned text on its way from the corpora to token ids, in files, so that memory does not grow with it."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import compress, islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.chunk_worker import CleanChunk
from softsearch.data.preparation.duplicates import Hashes, mark_repeated

_CHUNK_PAIRS = 4096
Lines = tuple[list[bytes], list[bytes]]  # of the source and of the target, with their newlines


class CleanedCorpus:
    """The pairs of a split, of all its corpora one after the other.

    Args:
        folder: a folder for its files, not there yet.
        corpora: how many there are.
    """

    def __init__(self, folder: Path, corpora: int) -> None:
        folder.mkdir()
        self._folder = folder
        self._open = ExitStack()
        self._files = [
            self._open.enter_context((folder / name).open("wb")) for name in ("src", "tgt", "numbers", "hashes")
        ]
        self.written = [0] * corpora
        self._kept: NDArray[np.bool_] | None = None

    def append(self, chunk: CleanChunk) -> None:
        """Writes the next pairs."""
        contents = chunk.src, chunk.tgt, chunk.numbers.tobytes(), chunk.hashes.tobytes()
        for file, content in zip(self._files, contents, strict=True):
            file.write(content)
        self.written[chunk.corpus[1]] += len(chunk.numbers)

    def close(self) -> None:
        """Ends writing, so that reading can begin."""
        self._open.close()

    def hashes(self) -> Hashes:
        """The hash of each pair that was written."""
        hashes: Hashes = self._array("hashes", np.uint64)
        return hashes

    def drop_repeated(self) -> None:
        """Leaves pairs out that have come before."""
        hashes = self.hashes()
        if not len(hashes):
            return
        self._kept = np.memmap(self._folder / "kept", np.bool_, "w+", shape=hashes.shape)
        for begin in range(0, len(hashes), _CHUNK_PAIRS):
            self._kept[begin : begin + _CHUNK_PAIRS] = True
        mark_repeated(hashes, self._kept)

    def sizes(self) -> list[int]:
        """How many pairs of each corpus are left."""
        if self._kept is None:
            return list(self.written)
        begins = np.cumsum([0, *self.written])
        return [int(np.count_nonzero(self._kept[a:b])) for a, b in pairwise(begins)]

    def chunks(self) -> Iterator[Lines]:
        """Yields the lines that are left, some thousand pairs at a time."""
        with (self._folder / "src").open("rb") as src, (self._folder / "tgt").open("rb") as tgt:
            for begin in range(0, sum(self.written), _CHUNK_PAIRS):
                sides = list(islice(src, _CHUNK_PAIRS)), list(islice(tgt, _CHUNK_PAIRS))
                if self._kept is not None:
                    wanted = self._kept[begin : begin + _CHUNK_PAIRS].tolist()
                    sides = list(compress(sides[0], wanted)), list(compress(sides[1], wanted))
                yield sides

    def numbers(self) -> Iterator[NDArray[np.int64]]:
        """Yields where in its corpus each of these pairs stands, from 1."""
        numbers: NDArray[np.int64] = self._array("numbers", np.int64)
        for begin in range(0, len(numbers), _CHUNK_PAIRS):
            chunk = numbers[begin : begin + _CHUNK_PAIRS]
            yield chunk if self._kept is None else chunk[self._kept[begin : begin + _CHUNK_PAIRS]]

    def sample(self, side: Literal[0, 1], most: int) -> Iterator[str]:
        """Yields the lines of a side: all, or ``most`` at equal distances."""
        total, index = sum(self.sizes()), 0
        for chunk in self.chunks():
            for line in chunk[side]:
                if total <= most or index * most // total < (index + 1) * most // total:
                    yield line.rstrip(b"\n").decode()
                index += 1

    def _array(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        if not sum(self.written):
            return np.empty(0, dtype)  # an empty file cannot be mapped
        return np.memmap(self._folder / name, dtype, "r")
