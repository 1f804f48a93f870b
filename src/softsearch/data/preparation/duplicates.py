"""Repeated pairs, found by their hashes: within a corpus, and between training and test data.

A hash has 64 bits: among n different pairs, about n^2 / 2^65 are mistaken for others, which is 3 in a million corpora
of 10 million pairs and 3 in a hundred of a billion.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 21  # hashes in memory at a time
Hashes = NDArray[np.uint64]


def mark_repeated(hashes: Hashes, dropped: NDArray[np.bool_]) -> None:
    """Sets ``dropped`` for every pair whose hash occurs earlier; both arrays may be files.

    Reads all hashes once for each 2 million of them, and each time compares those with another remainder, which are
    about so many.
    """
    parts = -(-len(hashes) // AT_ONCE)
    for part in range(parts):
        indices = np.concatenate([begin + np.flatnonzero(chunk % parts == part) for begin, chunk in _chunks(hashes)])
        values = hashes[indices]
        order = np.argsort(values, kind="stable")  # equal ones stay in the order of the corpus
        ordered = values[order]
        dropped[indices[order[1:][ordered[1:] == ordered[:-1]]]] = True


def count_shared(hashes: Hashes, others: Hashes) -> int:
    """How many of ``others``, a small array, occur in ``hashes``."""
    distinct, inverse = np.unique(others, return_inverse=True)
    shared = np.zeros(len(distinct), dtype=np.bool_)
    for _, chunk in _chunks(hashes):
        indices = np.searchsorted(distinct, chunk).clip(max=len(distinct) - 1)
        shared[indices[distinct[indices] == chunk]] = True
    return int(shared[inverse].sum())


def _chunks(hashes: Hashes) -> Iterator[tuple[int, Hashes]]:
    for begin in range(0, len(hashes), AT_ONCE):
        yield begin, np.asarray(hashes[begin : begin + AT_ONCE])
