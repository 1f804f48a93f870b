"""The trials of a sweep as files and pictures."""

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from softsearch.report.drawing import style


def write_rows(rows: Sequence[Mapping[str, Any]], folder: Path) -> tuple[str, str]:
    """Writes ``results.json`` and ``results.csv`` and returns their names."""
    with (folder / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "results.json").write_text(json.dumps(list(rows), indent=2) + "\n", encoding="utf-8")
    return "results.csv", "results.json"


def draw_importances(importances: Mapping[str, Mapping[str, float]], trials: int, path: Path) -> None:
    """Writes bars as PNG: how much each parameter matters for each objective.

    Args:
        importances: objective to parameter to share; the shares of an objective sum to 1.
        trials: how many the shares were computed from.
        path: the file to write.
    """
    first = next(iter(importances.values()))
    parameters = sorted(first, key=lambda name: first[name])  # barh draws upwards: the first ends on top
    height = 0.8 / len(importances)
    with style():
        figure = Figure(figsize=(8, 1.6 + 0.4 * max(2, len(parameters) * len(importances))), layout="constrained")
        axes = figure.add_subplot()
        for index, (objective, shares) in enumerate(importances.items()):
            places = np.arange(len(parameters)) + 0.4 - height * (index + 0.5)
            bars = axes.barh(places, [shares[name] for name in parameters], height, label=objective)
            axes.bar_label(bars, fmt="%.2f", padding=3)
        axes.set_yticks(range(len(parameters)), parameters)
        axes.set_xlim(0, 1.08)
        axes.set_xlabel("importance (PED-ANOVA, shares of 1)")
        axes.set_title(f"What matters, from {trials} trials")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3)
        figure.savefig(path, format="png")


def draw_pareto(
    points: NDArray[np.floating],
    numbers: Sequence[int],
    objectives: Mapping[str, str],
    front: Sequence[bool],
    path: Path,
) -> None:
    """Writes a panel for each pair of objectives as PNG; trials that no other one beats in all of them are numbered.

    Args:
        points: ``[trials, objectives]``.
        numbers: of the trials.
        objectives: name to ``maximize`` or ``minimize``.
        front: which trials are on the Pareto front of all objectives together.
        path: the file to write.
    """
    names = list(objectives)
    pairs = list(combinations(range(len(names)), 2))
    best = np.asarray(front)
    with style():
        figure = Figure(figsize=(5.2 * len(pairs), 4.6), layout="constrained")
        for axes, (y, x) in zip(np.ravel(figure.subplots(1, len(pairs))), pairs, strict=True):
            axes.scatter(*points[~best][:, (x, y)].T, color="#9aa0a6", label="beaten by another")
            axes.scatter(*points[best][:, (x, y)].T, color="#c5221f", label="on the Pareto front")
            for number, place in zip(np.asarray(numbers)[best], points[best][:, (x, y)], strict=True):
                axes.annotate(str(number), place, xytext=(5, 5), textcoords="offset points")
            for axis, index in ((axes.xaxis, x), (axes.yaxis, y)):
                better = "more" if objectives[names[index]] == "maximize" else "less"
                axis.set_label_text(f"{names[index]} ({better} is better)")
                if np.abs(points[:, index]).max() >= 1000:  # 12k parameters, but a BLEU of 0.4, not of 400m
                    axis.set_major_formatter(EngFormatter(sep=""))
            axes.margins(0.12)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        figure.savefig(path, format="png")
