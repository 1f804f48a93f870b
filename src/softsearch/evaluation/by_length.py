"""Scores and length ratio by source length (Bahdanau et al. 2015, figure 2)."""

from bisect import bisect_left
from collections.abc import Sequence

from softsearch.evaluation.bootstrap import interval, resample
from softsearch.evaluation.metrics import Metric, Table
from softsearch.evaluation.schema import LengthRange

_UPPER_BOUNDS = (5, 10, 15, 20, 30, 40, 50)  # words; longer sources are in a last range
MIN_DRAWN = 10  # sentences of a range in a chart: the score of fewer is chance
_NAMES = ("01-05", "06-10", "11-15", "16-20", "21-30", "31-40", "41-50", "51+")  # in alphabetical order


def length_ranges(sources: Sequence[str]) -> dict[str, list[int]]:
    """The indices of the sources by range of lengths, short ones first, without empty ranges.

    Lengths are in words separated by spaces. The ranges are fixed, so that runs can be compared.
    """
    indices: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        indices.setdefault(bisect_left(_UPPER_BOUNDS, len(source.split())), []).append(index)
    return {_NAMES[number]: indices[number] for number in sorted(indices)}


def score_by_length(sources: Sequence[str], metric: Metric, table: Table, words: Table) -> list[LengthRange]:
    """Scores with intervals, and length ratios, by range.

    Args:
        sources: the sentences.
        metric: scores them.
        table: its statistics of them.
        words: numbers of words of their translations and references, ``[sentences, 2]``.
    """
    return [
        LengthRange(name, len(own), interval(metric, resample(metric, table[own])), length_ratio(words[own]))
        for name, own in length_ranges(sources).items()
    ]


def length_ratio(words: Table) -> float:
    """Words of the translations per word of the references; 0 without references."""
    translated, expected = words.sum(axis=0)
    return float(translated / expected) if expected else 0.0
