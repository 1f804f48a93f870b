"""Learning curves of runs from ``metrics.csv``."""

import csv
import io
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from softsearch.evaluation.schema import MetricFacts
from softsearch.files import new_file, open_file
from softsearch.report.drawing import COLOURS, LINE, SOFT, colour, drawable, style

_MAX_BYTES = 64 << 20  # of metrics.csv; in memory they are several times as many
_MAX_STEP = 2**53  # larger steps cannot be drawn
_NO_SCORES = ("val/loss", "val/perplexity")
LOSS = "-log p of a target token"  # the objective may be another one, with smoothing or per sentence
PANELS = {  # title: (metrics of a single run, metrics if there are several runs)
    LOSS: ("train/nll val/loss", "val/loss"),
    "scores on the validation set": ("val/", "val/"),
    "learning rate": ("lr", "lr"),
    "target tokens/s": ("tokens/s", "tokens/s"),
    "norm of the gradients": ("grad_norm/", "grad_norm/total"),
}
Points = dict[str, tuple[list[int], list[float]]]  # metric -> steps and values


def read_points(path: Path) -> Points:
    """Reads a ``metrics.csv``; ignores a truncated last line, and empty or unreadable cells.

    Raises:
        OSError, LookupError, ValueError: the file is missing, or of another kind.
    """
    points: Points = {}
    with open_file(path) as binary, io.TextIOWrapper(binary, "utf-8", newline="") as file:
        if (size := os.fstat(binary.fileno()).st_size) > _MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than {_MAX_BYTES:,}")
        try:
            for row in csv.DictReader(line for line in file if line.endswith("\n")):
                step = int(row.pop("step") or "missing")
                if abs(step) >= _MAX_STEP:
                    raise ValueError("a step is out of range")
                for name, value in row.items():
                    with suppress(TypeError, ValueError):  # also for cells beyond the header
                        number = float(value)
                        steps, values = points.setdefault(name, ([], []))
                        steps.append(step)
                        values.append(number)
        except csv.Error as error:
            raise ValueError(f"it is not a table ({error})") from error
    return points


def draw_curves(runs: Mapping[str, Points], metrics: Mapping[str, MetricFacts], path: Path) -> None:
    """Writes a PNG of loss, scores, learning rate, speed and gradients over steps, for one or several runs.

    ``metrics`` tell which scores are shares, drawn in per cent; others are drawn unchanged. With several runs each
    panel shows one metric, with a colour for each run. The first score is the one that most runs have.
    """
    with style():
        figure = Figure(figsize=(12, 6.4))
        figure.subplots_adjust(0.05, 0.08, 0.99, 0.95, 0.2, 0.25)
        *panels, last = figure.subplots(2, 3, sharex=True).ravel()
        for axes, (title, wanted) in zip(panels, PANELS.items(), strict=True):
            _draw(axes, title, runs, wanted[len(runs) > 1], metrics)
            axes.xaxis.set_tick_params(labelbottom=True)
        last.set_axis_off()
        if len(runs) > 1:
            handles = [last.plot([], [], color=colour(number))[0] for number in range(len(runs))]
            last.legend(handles, map(drawable, runs), frameon=False, loc="upper left", fontsize=9)
        else:
            last.legend(*panels[-1].get_legend_handles_labels(), frameon=False, loc="upper left", fontsize=8)
        panels[-1].set_xlabel("steps", color=SOFT, fontsize=8)
        with new_file(path) as file:
            figure.savefig(file, format="png", dpi=100, pil_kwargs={"compress_level": 1})  # takes a third of the time


def draw_panel(title: str, runs: Mapping[str, Points], metrics: Mapping[str, MetricFacts]) -> Figure | None:
    """Draws one panel of ``draw_curves`` inside ``style``; None if no run has such metrics."""
    figure = Figure(figsize=(4.8, 3.0), layout="constrained")
    axes = figure.add_subplot()
    _draw(axes, title, runs, PANELS[title][len(runs) > 1], metrics)
    axes.set_xlabel("steps", color=SOFT, fontsize=9)
    return figure if axes.lines else None


def draw_rates(
    rates: NDArray[np.floating], losses: NDArray[np.floating], smooth: NDArray[np.floating], marked: float, path: Path
) -> None:
    """Writes a PNG of the losses at rising learning rates, with a smooth curve that ends before the last loss.

    Losses after its end may be infinite; those above the upper edge are drawn at the edge.
    """
    shown = np.concatenate([losses[: len(smooth)], smooth])
    low, high = float(shown.min()), float(shown.max())
    margin = 0.05 * (high - low) or 1.0
    with style():
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(rates, np.minimum(losses, high + margin), color=COLOURS[0], linewidth=0.6, alpha=0.6, label="loss")
        axes.plot(rates[: len(smooth)], smooth, color=COLOURS[0], linewidth=1.8, label="smoothed")
        axes.axvline(marked, color=COLOURS[1], label=f"falls fastest at {marked:.1e}")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("learning rate", color=SOFT, fontsize=9)
        axes.set_ylim(low - margin, high + margin)
        axes.legend(frameon=False, fontsize=9)
        axes.grid(color=LINE, linewidth=0.6)
        axes.spines[["top", "right", "left"]].set_visible(False)
        with new_file(path) as file:
            figure.savefig(file, format="png")


def _draw(axes: Axes, title: str, runs: Mapping[str, Points], wanted: str, metrics: Mapping[str, MetricFacts]) -> None:
    names = {name for points in runs.values() for name in points if _matches(name, wanted)}
    if len(runs) > 1 and names:
        names = {max(sorted(names), key=lambda name: sum(name in points for points in runs.values()))}
        title += (
            f": {', '.join(names).removeprefix('val/')}"
            if wanted == "val/"
            else " of the validation set" * (title == LOSS)
        )
    for number, points in enumerate(runs.values()):
        for line, name in enumerate(name for name in points if name in names):
            steps, values = points[name]
            fact = metrics.get(name.removeprefix("val/"))
            is_share = wanted == "val/" and fact is not None and fact.percent
            marker = "o" if name.startswith("val/") and len(steps) < 60 else None
            axes.plot(
                steps,
                [100 * value for value in values] if is_share else values,
                color=colour(number if len(runs) > 1 else line),
                linewidth=1.8 if name.startswith("val/") or name.endswith("total") or len(names) == 1 else 0.9,
                marker=marker,
                markersize=3,
                label=drawable(name.rpartition("/")[2] if "grad" in name or wanted == "val/" else name)
                + " in %" * is_share,
            )
    axes.set_title(title, color=SOFT, fontsize=10, loc="left")
    if len(runs) == 1 and len(names) > 1 and not wanted.startswith("grad_norm"):
        axes.legend(fontsize=8, frameon=False, labelcolor=SOFT)
    if wanted.startswith("grad_norm") and names:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(EngFormatter(sep="") if wanted == "tokens/s" else StrMethodFormatter("{x:g}"))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(which="both", length=0, labelsize=8, labelcolor=SOFT)
    axes.grid(color=LINE, linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _matches(name: str, wanted: str) -> bool:
    if wanted == "val/":
        return name.startswith("val/") and name not in _NO_SCORES
    return name in wanted.split() or (wanted.endswith("/") and name.startswith(wanted))
