"""Which cleaned pairs stay: repeated pairs and those of unusual lengths are found across all parts of a split.

Repeated pairs are found by 64-bit hashes: among n different pairs, about n^2 / 2^65 are mistaken for others, which
happens in 3 of a million corpora of 10 million pairs, and in 3 of a hundred corpora of a billion.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.cache_folder import PARTS, made_folder
from softsearch.data.preparation.clean import Hashes, Lengths
from softsearch.data.preparation.encode import read_array
from softsearch.data.preparation.text_parts import TextPart
from softsearch.text.filters import Filters

HASH_CHUNK = 1 << 21  # hashes in memory at a time
_FORMAT = 1
_DROPPED, _COUNTS = "dropped", "counts.json"
_ROUNDING = 1e-9  # for deviations, if all pairs have the same ratio
Number = TypeVar("Number", bound=np.generic)
Marks = NDArray[np.bool_]


def select(
    corpora: Sequence[Sequence[TextPart]], filters: Filters, cache_dir: Path
) -> tuple[Marks | None, list[dict[str, int]]]:
    """Returns which pairs of the parts are dropped (None: none of them), and how many of each corpus, by reason.

    Both are made once for the same parts.
    """
    if not filters.duplicates and filters.max_length_z is None:
        return None, [{} for _ in corpora]

    def write(folder: Path) -> None:
        ends = np.cumsum([0, *(sum(part.pairs for part in parts) for parts in corpora)]).tolist()
        dropped = np.zeros(0, np.bool_)
        if ends[-1]:  # an empty file cannot be mapped
            dropped = np.memmap(folder / _DROPPED, np.bool_, "w+", shape=ends[-1])
        else:
            (folder / _DROPPED).touch()
        counts: list[dict[str, int]] = [{} for _ in corpora]
        if filters.duplicates:
            mark_repeated([part.hashes for part in chain.from_iterable(corpora)], dropped)
        for count, begin, end in zip(counts, ends[:-1], ends[1:], strict=True):
            count["repeated"] = int(np.count_nonzero(dropped[begin:end]))
        if filters.max_length_z is not None:
            for count, parts, begin, end in zip(counts, corpora, ends[:-1], ends[1:], strict=True):
                mark_unusual([part.lengths for part in parts], dropped[begin:end], filters.max_length_z)
                count["unusual"] = int(np.count_nonzero(dropped[begin:end])) - count["repeated"]
        (folder / _COUNTS).write_text(json.dumps(counts), encoding="utf-8")

    names = [[part.folder.name for part in parts] for parts in corpora]
    identity = repr((_FORMAT, names, filters.duplicates, filters.max_length_z))
    folder = made_folder(cache_dir / PARTS, "dropped", identity, write)
    return read_array(folder / _DROPPED, np.bool_), json.loads((folder / _COUNTS).read_text(encoding="utf-8"))


def mark_repeated(hashes: Sequence[Hashes], dropped: Marks) -> None:
    """Sets ``dropped`` for each pair whose hash occurs earlier; the arrays may be files.

    Reads all hashes once per 2 million of them. Each pass compares about 2 million hashes, those with one remainder.
    """
    passes = -(-sum(map(len, hashes)) // HASH_CHUNK)
    for number in range(passes):
        places, values = list[NDArray[np.int64]](), list[Hashes]()
        for begin, chunk in _chunks(hashes):
            own = np.flatnonzero(chunk % passes == number)
            places.append(begin + own)
            values.append(chunk[own])
        indices, found = np.concatenate(places), np.concatenate(values)
        order = np.argsort(found, kind="stable")  # equal ones keep the order of the corpus
        ordered = found[order]
        dropped[indices[order[1:][ordered[1:] == ordered[:-1]]]] = True


def mark_unusual(lengths: Sequence[Lengths], dropped: Marks, most: float) -> None:
    """Sets ``dropped`` for each pair in a corpus with unusual ``lengths``; the arrays may be files.

    A target of t characters for a source of s has the deviation d = (t - c s) / sqrt(v s) (Gale & Church 1993, "A
    program for aligning sentences in bilingual corpora", section 3), and pairs with abs(d) > ``most`` are dropped. Over
    the pairs not dropped before, c is the number of target characters per source character, and v the mean of (t - c
    s)^2 / s, which makes the mean of d^2 one. Reads the lengths three times.
    """
    if np.all(dropped):
        return
    sums = [chunk[~marks].sum(axis=0, dtype=np.int64) for chunk, marks in _with_marks(lengths, dropped)]
    src_sum, tgt_sum = np.sum(sums, axis=0)

    def squares(chunk: Lengths) -> NDArray[np.float64]:
        src, tgt = chunk.T.astype(np.float64)
        return (tgt - tgt_sum / src_sum * src) ** 2 / src

    total = sum(squares(chunk[~marks]).sum() for chunk, marks in _with_marks(lengths, dropped))
    variance = total / np.count_nonzero(~dropped)
    for chunk, marks in _with_marks(lengths, dropped):
        marks |= squares(chunk) > most**2 * variance + _ROUNDING


def count_shared(hashes: Sequence[Hashes], others: Hashes) -> int:
    """Returns how many of ``others``, a small array, occur in ``hashes``."""
    distinct, inverse = np.unique(others, return_inverse=True)
    shared = np.zeros(len(distinct), dtype=np.bool_)
    for _, chunk in _chunks(hashes):
        places = np.searchsorted(distinct[1:], chunk, side="right")  # of the last that is not larger
        shared[places[distinct[places] == chunk]] = True
    return int(shared[inverse].sum())


def _with_marks(lengths: Sequence[Lengths], dropped: Marks) -> Iterator[tuple[Lengths, Marks]]:
    """Yields some lengths at a time, and their marks, which may be changed."""
    for begin, chunk in _chunks(lengths):
        yield chunk, dropped[begin : begin + len(chunk)]


def _chunks(arrays: Sequence[NDArray[Number]]) -> Iterator[tuple[int, NDArray[Number]]]:
    """Yields some rows of the arrays at a time, and the place of the first in all."""
    before = 0
    for array in arrays:
        for begin in range(0, len(array), HASH_CHUNK):
            yield before + begin, np.asarray(array[begin : begin + HASH_CHUNK])
        before += len(array)
