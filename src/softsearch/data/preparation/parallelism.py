"""Checks that two files are parallel: translations have similar lengths, numbers and punctuation."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_STRETCH, _PARTS, _MIN_LINES = 1000, 4, 100  # usual lines per stretch; stretches in shorter text; their minimum lines
_MIN_STRETCH = 300  # a shorter stretch is reported only with a similar neighbour
_MAX_SHIFT = 10
_NO_RELATION = 0.2  # rank correlation; in Multi30k and Tanaka's en-ja all 100 lines have more than 0.3
_CERTAIN, _BETTER = 4.5, 3.5  # standard deviations above chance, and above the present position
_MIN_CHARACTERS, _MIN_SPREAD = 12, 1.25  # for sentences: median length, and ratio of third to first quartile
_MIN_CHARACTERS_TARGET = 5  # for one side, if the other's script has letters
_COUNTED = (re.compile(r"\d"), re.compile(r"[^\w\s]"))
_Array = NDArray[np.float64]


class Mismatch(NamedTuple):
    """A stretch of lines that do not seem to be translations of each other.

    Attributes:
        first: its first line, from 1.
        last: its last line.
        correlation: of the ranks of lengths, or of numbers or punctuation if higher.
        shift: source line n matches target line n + ``shift``; None if no match was found.
    """

    first: int
    last: int
    correlation: float
    shift: int | None

    def __str__(self) -> str:
        """Describes the mismatch in words."""
        found = "lengths, numbers and punctuation do not match better than by chance"
        if self.shift:
            found = f"source line n matches target line n {'+' if self.shift > 0 else '-'} {abs(self.shift)}"
        return f"lines {self.first:,} to {self.last:,}: {found}"


def mismatches(src: Sequence[str], tgt: Sequence[str], numbers: Sequence[int]) -> list[Mismatch]:
    """Returns the stretches of consecutive pairs that do not seem to be translations.

    Text that allows no conclusion is skipped: single words, lines of equal length, one repeated line.

    Args:
        src: source lines.
        tgt: target lines.
        numbers: line numbers, ascending.
    """
    parts = max(round(len(src) / _STRETCH), min(_PARTS, len(src) // _MIN_LINES))
    if not parts:
        return []
    sides = _features(src), _features(tgt)
    bounds = np.linspace(0, len(src), parts + 1).astype(int).tolist()
    found = [_mismatch(sides[0][:, begin:end], sides[1][:, begin:end]) for begin, end in pairwise(bounds)]
    size = len(src) // parts
    return [
        Mismatch(numbers[begin], numbers[end - 1], *one)
        for index, (one, (begin, end)) in enumerate(zip(found, pairwise(bounds), strict=True))
        if one
        and (size >= _MIN_STRETCH or one[1] or any(found[max(0, index - 1) : index] + found[index + 1 : index + 2]))
    ]


def _features(lines: Sequence[str]) -> _Array:
    """Counts of characters, digits and other signs per line: ``[3, lines]``."""
    counts = [[len(pattern.findall(line)) for line in lines] for pattern in _COUNTED]
    return np.array([[len(line) for line in lines], *counts], dtype=np.float64)


def _mismatch(src: _Array, tgt: _Array) -> tuple[float, int | None] | None:
    """The highest correlation of a stretch, and a better shift, if any; None if it seems parallel."""
    ranks = [(_ranks(one), _ranks(other)) for one, other in zip(src, tgt, strict=True)]
    size = src.shape[1]
    shifts = [*range(-_MAX_SHIFT, _MAX_SHIFT + 1)]
    by_shift = {shift: max(_correlations(ranks, shift)) for shift in shifts if size > 2 * _MAX_SHIFT}
    here = by_shift[0]
    best = max(by_shift, key=lambda shift: by_shift[shift])
    deviations = by_shift[best] * size**0.5
    if best and deviations > _CERTAIN and deviations - here * size**0.5 > _BETTER:
        return round(here, 3), best
    if _has_sentences(src[0], tgt[0]) and here < min(_NO_RELATION, 4 / size**0.5):
        return round(here, 3), None
    return None


def _correlations(ranks: Sequence[tuple[_Array, _Array]], shift: int) -> Iterator[float]:
    """The correlations of source line n with target line n + ``shift``; 0 for constant features."""
    for src, tgt in ranks:
        one, other = src[max(0, -shift) : len(src) - max(0, shift)], tgt[max(0, shift) : len(tgt) - max(0, -shift)]
        one, other = one - one.mean(), other - other.mean()
        norm = ((one**2).sum() * (other**2).sum()) ** 0.5
        yield float((one * other).sum() / norm) if norm else 0.0


def _ranks(values: _Array) -> _Array:
    """Ranks of values; equal values get their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: _Array = (ends - (counts + 1) / 2)[inverse]
    return ranks


def _has_sentences(src: _Array, tgt: _Array) -> bool:
    """Tells whether lines are long enough, and vary enough in length, to be compared."""
    quartiles = np.percentile([src, tgt], (25, 50, 75), axis=1)
    is_long = quartiles[1].max() >= _MIN_CHARACTERS and quartiles[1].min() >= _MIN_CHARACTERS_TARGET
    return bool(is_long and (quartiles[2] >= _MIN_SPREAD * quartiles[0]).all())
