"""Scores and length ratio by source length (Bahdanau et al. 2015, figure 2)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from softsearch.evaluation.bootstrap import interval, resample
from softsearch.evaluation.metrics import LengthRatio, Metric, Table
from softsearch.evaluation.schema import LengthRange
from softsearch.evaluation.units import Unit, lengths, unit_of

MIN_DRAWN = 10  # sentences needed to draw a range: the score of fewer is too noisy
# Longer sources are in the last range; names are in alphabetical order. About three characters are a word.
_RANGES: Mapping[Unit, tuple[Sequence[int], Sequence[str]]] = {
    "words": ((5, 10, 15, 20, 30, 40, 50), ("01-05", "06-10", "11-15", "16-20", "21-30", "31-40", "41-50", "51+")),
    "characters": (
        (15, 30, 45, 60, 90, 120, 150),
        ("001-015", "016-030", "031-045", "046-060", "061-090", "091-120", "121-150", "151+"),
    ),
}


def length_ranges(sources: Sequence[str]) -> dict[str, list[int]]:
    """Returns the indices of the sources in each range of lengths, short ones first, without empty ranges.

    Lengths are in words separated by spaces, or in characters (``softsearch.evaluation.units.unit_of``). The ranges
    are fixed, so that runs can be compared.
    """
    bounds, names = _RANGES[unit_of(sources)]
    indices: dict[int, list[int]] = {}
    for index, length in enumerate(lengths(sources)):
        indices.setdefault(bisect_left(bounds, length), []).append(index)
    return {names[number]: indices[number] for number in sorted(indices)}


def score_by_length(
    sources: Sequence[str], metric: Metric, table: Table, ratio: LengthRatio, words: Table
) -> list[LengthRange]:
    """Returns scores with intervals, and length ratios, by range.

    Args:
        sources: the sentences.
        metric: the metric.
        table: its statistics of the sentences.
        ratio: the metric of length ratios.
        words: its statistics of the sentences.
    """
    return [
        LengthRange(name, len(own), interval(metric, resample(metric, table[own])), ratio.score(words[own].sum(axis=0)))
        for name, own in length_ranges(sources).items()
    ]
