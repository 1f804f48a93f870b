"""Charts: scores and length ratio by source length, scores by search time, Pareto fronts of runs or trials."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from softsearch.evaluation.schema import MetricFacts, SearchPoint
from softsearch.evaluation.units import Unit
from softsearch.report.drawing import GROUND, LINE, SOFT, colour, drawable, pixels, style

MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆"}  # Matplotlib marker -> character for a legend
Interval = tuple[float, float, float]  # value, low, high


def draw_by_length(
    values: Mapping[int, Mapping[str, Interval]],
    counts: Mapping[str, int],
    label: str,
    *,
    unit: Unit = "words",
    level: float | None = None,
    limits: Sequence[float | None] = (0.0, None),
    least: float = 0.0,
) -> Figure:
    """Draws a line per system over the ranges of source lengths, with bands for intervals, inside ``style``.

    ``counts`` are the numbers of sentences by range, in the order of the axis. The other axis stays within ``limits``
    and spans at least ``least``, so that rounding differences are not magnified.
    """
    figure, axes = _axes(f"{unit} in the source, and number of sentences", label)
    ranges = list(counts)
    for number, by_range in values.items():
        x = [ranges.index(name) for name in by_range]
        y, low, high = (list(side) for side in zip(*by_range.values(), strict=True))
        axes.fill_between(x, low, high, color=colour(number), alpha=0.16, linewidth=0)
        _line(axes, number, x, y)
        if len(values) == 1:
            for point in zip(x, y, strict=True):
                _annotate(axes, f"{point[1]:.{1 if point[1] >= 10 else 2}f}", point, number, above=True)
    if level is not None:
        axes.axhline(level, color=SOFT, linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(ranges)), [f"{drawable(name)}\n{count:,}" for name, count in counts.items()])
    axes.margins(x=0.06, y=0.12)
    bottom, top = axes.get_ylim()
    lowest, highest = limits
    lowest, highest = -np.inf if lowest is None else lowest, np.inf if highest is None else highest
    wider = max(0.0, least - (top - bottom)) / 2
    bottom, top = bottom - wider, top + wider
    shift = min(0.0, highest - top) + max(0.0, lowest - bottom)
    axes.set_ylim(max(lowest, bottom + shift), min(highest, top + shift))
    return figure


def length_chart(
    scores: Mapping[str, float], counts: Mapping[str, int], metric: MetricFacts, unit: Unit = "words"
) -> NDArray[np.uint8]:
    """Draws one system's scores by range, without intervals, as pixels ``[height, width, 3]``."""
    lines = {0: {name: (score,) * 3 for name, score in scores.items()}}
    with style():
        return pixels(draw_by_length(lines, counts, metric.title, unit=unit, limits=metric.limits))


def draw_search_curve(curves: Mapping[int, Sequence[SearchPoint]], metric: str) -> Figure:
    """Draws a metric over the seconds of a search, on a logarithmic axis, inside ``style``."""
    figure, axes = _axes("seconds for the test set", metric)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    for number, points in curves.items():
        scores = [point.quality for point in points]
        _line(axes, number, [point.seconds for point in points], scores)
        around = np.convolve(np.pad(scores, 1, mode="reflect" if len(scores) > 1 else "edge"), [0.5, 0, 0.5], "valid")
        for point, neighbours in zip(points, around, strict=True):
            above = bool(point.quality >= neighbours)  # the label is on the side away from the line
            _annotate(axes, drawable(point.name), (point.seconds, point.quality), number, above=above)
    axes.margins(x=0.09, y=0.15)
    return figure


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.8, 3.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x, color=SOFT, fontsize=9)
    axes.set_ylabel(y, color=SOFT, fontsize=9)
    axes.tick_params(which="both", length=0, labelsize=9, labelcolor=SOFT)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.grid(axis="y", color=LINE)
    axes.set_axisbelow(True)
    return figure, axes


def _line(axes: Axes, number: int, x: Sequence[float], y: Sequence[float]) -> None:
    marker = list(MARKERS)[number % len(MARKERS)]
    axes.plot(x, y, color=colour(number), marker=marker, markeredgecolor=GROUND, gid=f"line-{number}", clip_on=False)


def _annotate(axes: Axes, text: str, point: tuple[float, float], number: int, *, above: bool) -> None:
    offset, side = (6, "bottom") if above else (-6, "top")
    axes.annotate(
        text, point, (0, offset), textcoords="offset points", ha="center", va=side, color=colour(number), fontsize=8
    )
