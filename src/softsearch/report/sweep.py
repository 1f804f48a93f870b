"""The trials of a sweep as files and pictures."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

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
