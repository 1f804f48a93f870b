"""Pareto fronts, and their drawing."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from operator import ge
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from softsearch.report.parts import style


def pareto_front(points: Mapping[int, Sequence[float]]) -> set[int]:
    """Returns the keys of points that are not dominated: no other point is as good in all objectives, better in one."""
    return {
        key
        for key, point in points.items()
        if not any(other != point and all(map(ge, other, point)) for other in points.values())
    }


def draw_pareto(
    points: NDArray[np.floating],
    numbers: Sequence[int],
    objectives: Mapping[str, str],
    front: Sequence[bool],
    path: Path,
) -> None:
    """Writes a PNG with a panel per pair of objectives; points on the front of all objectives are numbered.

    ``points`` are ``[runs, objectives]``, and ``objectives`` map names to ``maximize`` or ``minimize``.
    """
    names = list(objectives)
    pairs = list(combinations(range(len(names)), 2))
    best = np.asarray(front)
    with style():
        figure = Figure(figsize=(5.2 * len(pairs), 4.6), layout="constrained")
        for axes, (y, x) in zip(np.ravel(figure.subplots(1, len(pairs))), pairs, strict=True):
            axes.scatter(*points[~best][:, (x, y)].T, color="#9aa0a6", label="dominated")
            axes.scatter(*points[best][:, (x, y)].T, color="#c5221f", label="on the Pareto front")
            for number, point in zip(np.asarray(numbers)[best], points[best][:, (x, y)], strict=True):
                axes.annotate(str(number), point, xytext=(5, 5), textcoords="offset points")
            for axis, index in ((axes.xaxis, x), (axes.yaxis, y)):
                better = "more" if objectives[names[index]] == "maximize" else "less"
                axis.set_label_text(f"{names[index]} ({better} is better)")
                if np.abs(points[:, index]).max() >= 1000:  # 12k parameters, but a BLEU of 0.4, not 400m
                    axis.set_major_formatter(EngFormatter(sep=""))
            axes.margins(0.12)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        figure.savefig(path, format="png")
