"""Pairs that occur more than once, found by their hashes: within a corpus, and between training and test data.

A hash has 64 bits: among n different pairs, about n^2 / 2^65 are taken for others, 3 in a million corpora of 10 million
pairs and 3 in a hundred of a billion.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 21  # hashes looked at together
Hashes = NDArray[np.uint64]


def mark_repeated(hashes: Hashes, kept: NDArray[np.bool_]) -> None:
    """Sets ``kept`` to false for every pair whose hash occurs earlier; both arrays may be files.

    Goes through all hashes once for each 2 million of them, and each time looks for repetitions among those with
    another remainder, which are about so many.
    """
    parts = -(-len(hashes) // AT_ONCE)
    for part in range(parts):
        indices = np.concatenate([begin + np.flatnonzero(chunk % parts == part) for begin, chunk in _chunks(hashes)])
        found = hashes[indices]
        order = np.argsort(found, kind="stable")  # equal ones stay in the order of the corpus
        ordered = found[order]
        kept[indices[order[1:][ordered[1:] == ordered[:-1]]]] = False


def count_shared(hashes: Hashes, others: Hashes) -> int:
    """How many of ``others``, a small array, occur in ``hashes``."""
    distinct, inverse = np.unique(others, return_inverse=True)
    found = np.zeros(len(distinct), dtype=np.bool_)
    for _, chunk in _chunks(hashes):
        places = np.searchsorted(distinct, chunk).clip(max=len(distinct) - 1)
        found[places[distinct[places] == chunk]] = True
    return int(found[inverse].sum())


def _chunks(hashes: Hashes) -> Iterator[tuple[int, Hashes]]:
    for begin in range(0, len(hashes), AT_ONCE):
        yield begin, np.asarray(hashes[begin : begin + AT_ONCE])
