"""BLEU and length ratio by source length (Bahdanau et al. 2015, figure 2)."""

from bisect import bisect_left
from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from softsearch.evaluation.bootstrap import score_with_interval
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


def score_by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], bleu: BLEU
) -> list[LengthRange]:
    """BLEU with intervals, and length ratios, by range."""
    ranges = []
    for name, indices in length_ranges(sources).items():
        own, expected = ([side[index] for index in indices] for side in (hypotheses, references))
        score = score_with_interval(bleu, own, expected)
        ranges.append(LengthRange(name, len(indices), score, length_ratio(own, expected, bleu)))
    return ranges


def length_ratio(hypotheses: Sequence[str], references: Sequence[str], bleu: BLEU) -> float:
    """Words of the translations per word of the references, as ``bleu`` tokenises them; 0 without references."""
    score = bleu.corpus_score(list(hypotheses), [list(references)])
    return float(score.sys_len / score.ref_len) if score.ref_len else 0.0
