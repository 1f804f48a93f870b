"""Groups of pairs that share a sentence, found in files, so that memory does not grow with the corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 21  # numbers in memory at a time
Hashes = NDArray[np.uint64]


class PairGroups:
    """The groups of pairs that are connected by equal sentences, in a random order that follows their text alone.

    Args:
        hashes: ``[pairs, 2]`` odd hashes of both sides; 0 for pairs in no group.
        sizes: number of pairs of each source, one after another.
        folder: for files of some 60 bytes a pair.
    """

    def __init__(self, hashes: Hashes, sizes: Sequence[int], folder: Path) -> None:
        self._folder, self._ends = folder, np.cumsum(sizes)
        self.keys: Hashes = self.new("keys", np.uint64, len(hashes))  # of each pair's group; 0 for none
        texts, numbers = self._texts(hashes)
        lowest = _connected(numbers, self.new("lowest", np.int64, len(texts)))
        mixed = self.new("mixed", np.uint64, len(texts))
        for chunk in chunks(len(texts)):
            np.bitwise_xor.at(mixed, lowest[chunk], texts[chunk])
        for chunk in chunks(len(hashes)):
            own = numbers[chunk, 0]
            self.keys[chunk] = np.where(own < 0, np.uint64(0), mixed[lowest[own]]) if len(texts) else 0

    def new(self, name: str, dtype: type[np.generic], size: int) -> NDArray[Any]:
        """Returns an array of zeros in a file."""
        return np.memmap(self._folder / name, dtype, "w+", shape=size) if size else np.zeros(0, dtype)

    def sources(self, chunk: slice) -> NDArray[np.intp]:
        """Returns the number of each pair's source."""
        return np.searchsorted(self._ends, np.arange(chunk.start, chunk.stop), side="right")

    def in_order(self) -> Iterator[tuple[Hashes, NDArray[np.int64]]]:
        """Yields some groups at a time: their keys, rising, and ``[groups, sources]`` numbers of pairs."""
        parts = max(1, -(-len(self.keys) * len(self._ends) // CHUNK))
        bounds = [part * 2**64 // parts for part in range(parts)]
        for first, end in zip(bounds, [*bounds[1:], 2**64], strict=True):
            found = np.zeros(0, np.uint64)
            for _, keys in self._between(first, end):
                found = np.unique(np.concatenate([found, keys]), return_counts=True)[0]  # sorts; hashing is slower
            counts = np.zeros((len(found), len(self._ends)), np.int64)
            for sources, keys in self._between(first, end):
                np.add.at(counts, (np.searchsorted(found, keys), sources), 1)
            yield found, counts

    def count(self, places: NDArray[np.int8], place: int) -> NDArray[np.int64]:
        """Returns the number of pairs in groups by source, of those with this place."""
        counts = np.zeros(len(self._ends), np.int64)
        for chunk in chunks(len(self.keys)):
            counted = (self.keys[chunk] != 0) & (places[chunk] == place)
            counts += np.bincount(self.sources(chunk)[counted], minlength=len(counts))
        return counts

    def _between(self, first: int, end: int) -> Iterator[tuple[NDArray[np.intp], Hashes]]:
        for chunk in chunks(len(self.keys)):
            keys = self.keys[chunk]
            wanted = (keys >= max(first, 1)) & (keys <= end - 1)
            yield self.sources(chunk)[wanted], keys[wanted]

    def _texts(self, hashes: Hashes) -> tuple[Hashes, NDArray[np.int64]]:
        """Returns the distinct hashes and, for each side of each pair, the number of its hash, -1 for none."""
        flat = hashes.reshape(-1)
        numbers, texts = self.new("numbers", np.int64, len(flat)), self.new("texts", np.uint64, len(flat))
        numbers[:] = -1
        parts, total = -(-len(flat) // CHUNK), 0
        for part in range(parts):
            places = np.concatenate(
                [
                    chunk.start + np.flatnonzero((flat[chunk] != 0) & ((flat[chunk] >> np.uint64(1)) % parts == part))
                    for chunk in chunks(len(flat))
                ]
            )
            distinct, inverse = np.unique(flat[places], return_inverse=True)
            numbers[places] = total + inverse
            texts[total : total + len(distinct)] = distinct
            total += len(distinct)
        return texts[:total], numbers.reshape(-1, 2)


def chunks(size: int) -> Iterator[slice]:
    """Yields the slices of an array that are read one after another."""
    for begin in range(0, size, CHUNK):
        yield slice(begin, min(begin + CHUNK, size))


def _connected(numbers: NDArray[np.int64], lowest: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fills in the lowest text that each text is connected with, by the ``numbers`` of the two texts of each pair."""
    for chunk in chunks(len(lowest)):
        lowest[chunk] = np.arange(chunk.start, chunk.stop)
    changed = True
    while changed:
        changed = False
        for chunk in chunks(len(numbers)):
            ends = numbers[chunk]
            found = lowest[ends[ends[:, 0] >= 0]]
            found = found[found[:, 0] != found[:, 1]]
            if len(found):
                changed = True
                np.minimum.at(lowest, found, found.min(axis=1, keepdims=True))
        for chunk in chunks(len(lowest)):
            while np.any(lowest[chunk] != (further := lowest[lowest[chunk]])):
                lowest[chunk] = further
    return lowest
