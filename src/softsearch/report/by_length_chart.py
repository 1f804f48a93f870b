"""The chart of quality by the length of the source (Bahdanau et al. 2015, figure 2)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softsearch.report.drawing import pixels, style


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
