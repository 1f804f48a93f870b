"""Quality by the length of the source (Bahdanau et al. 2015, figure 2)."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from softsearch.evaluation.bootstrap import score_with_interval
from softsearch.evaluation.schema import LengthRange
from softsearch.report.drawing import pixels, style

_LONGEST = (5, 10, 15, 20, 30, 40, 50)  # words of the longest sentence of each range; a last range has the others


def length_ranges(sources: Sequence[str]) -> dict[str, list[int]]:
    """The places of the sources in each range of lengths, short ones first; ranges without sentences are left out.

    A length counts words, separated by spaces. The ranges are fixed, so that runs can be compared.
    """
    places: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        places.setdefault(bisect_left(_LONGEST, len(source.split())), []).append(place)
    return {_name(number): places[number] for number in sorted(places)}


def score_by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], bleu: BLEU
) -> list[LengthRange]:
    """The BLEU of each range with its interval, and how long its translations are."""
    found = []
    for name, places in length_ranges(sources).items():
        ours, theirs = ([side[place] for place in places] for side in (hypotheses, references))
        score = score_with_interval(bleu, ours, theirs)
        found.append(LengthRange(name, len(places), score, length_ratio(ours, theirs, bleu)))
    return found


def length_ratio(hypotheses: Sequence[str], references: Sequence[str], bleu: BLEU) -> float:
    """Words of the translations for each word of the references, as ``bleu`` tokenises them; 0 without references."""
    found = bleu.corpus_score(list(hypotheses), [list(references)])
    return float(found.sys_len / found.ref_len) if found.ref_len else 0.0


def length_chart(scores: Mapping[str, float], counts: Mapping[str, int], metric: str) -> NDArray[np.uint8]:
    """A bar for each range with its number of sentences above, as pixels ``[height, width, 3]``.

    Args:
        scores: of each range, 0 to 100.
        counts: sentences of each range.
        metric: what the scores are.
    """
    with style():
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        bars = axes.bar(list(scores), list(scores.values()), color="0.35")
        axes.bar_label(bars, [f"{scores[name]:.1f}\nn={counts[name]:,}" for name in scores], fontsize=8, padding=2)
        axes.set_ylim(0, max(1.0, 1.25 * max(scores.values())))
        axes.set_xlabel("words of the source")
        axes.set_ylabel(metric)
        axes.spines[["top", "right"]].set_visible(False)
        return pixels(figure)


def _name(number: int) -> str:
    if number == len(_LONGEST):
        return f"{_LONGEST[-1] + 1}+"
    first = _LONGEST[number - 1] + 1 if number else 1
    return f"{first:02d}-{_LONGEST[number]:02d}"  # two digits, so that names sort by length
