"""Charts of measured tables: lines, bars, points and heatmaps, of rows that may come from several seeds."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from softsearch.report.drawing import LINE, SOFT, colour, drawable, style

_Rows = Sequence[Mapping[str, Any]]
_MARKERS = "os^Dvp*X"
_COLUMNS = 2  # of panels
_DECADE_TICKS_FROM = 1000  # ratio of the ends of a logarithmic axis from which powers of ten suffice as ticks


def draw_rows(
    rows: _Rows,
    path: Path,
    *,
    kind: Literal["line", "bar", "scatter", "heatmap"],
    x: str,
    y: str,
    value: str | None = None,
    series: str | None = None,
    panel: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    x_log: bool = False,
    y_log: bool = False,
) -> None:
    """Writes a PNG.

    Args:
        rows: text and numbers by column. Rows with the same x and series are averaged, with a band or a bar from the
            lowest to the highest; rows without a value are left out.
        path: of the PNG.
        kind: of chart. A heatmap has a cell for each x and y, the darker the larger its ``value``; a number before a
            name, as in ``3 the``, keeps equal names apart and is not drawn.
        x: the column of the horizontal axis: numbers, or text in the order of the rows.
        y: that of the vertical axis, which is text in heatmaps.
        value: the column of a heatmap's values.
        series: the column by which lines, groups of bars and colours of points differ.
        panel: the column by which the rows are split into charts.
        x_label: words for the axis, or else the column's name.
        y_label: likewise.
        x_log: draws the axis with logarithms.
        y_log: likewise.
    """
    rows = [row for row in rows if row.get(value or y) is not None]
    panels = _distinct(rows, panel)
    columns, names = min(_COLUMNS, len(panels)), _distinct(rows, series)
    lines = -(-len(panels) // columns)
    draw = {"line": _lines, "bar": _bars, "scatter": _points}
    with style():
        figure = Figure(figsize=(max(6.4, 5.4 * columns), 3.8 * lines), layout="constrained")
        grid = np.ravel(figure.subplots(lines, columns, squeeze=False, sharey=kind in {"line", "bar"}))
        for axes, name in zip(grid, panels, strict=False):
            own = [row for row in rows if panel is None or row[panel] == name]
            if panel is not None:
                axes.set_title(drawable(str(name)), fontsize=9, color=SOFT, wrap=True)
            if kind == "heatmap" and value is not None:
                _heatmap(axes, own, x, y, value)
                continue
            order = _distinct(own, x)
            for index, each in enumerate(names):
                chosen = [row for row in own if series is None or row[series] == each]
                if chosen:
                    draw[kind](axes, chosen, x, y, index, len(names), drawable(str(each)), order)
            _finish(axes, x_label or x, y_label or y, x_log=x_log, y_log=y_log)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        if series is not None and kind != "heatmap":
            _legend(figure)
        figure.savefig(path, format="png")


def _legend(figure: Figure) -> None:
    """Names the series of all panels, some of which may lack some."""
    shown = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in shown}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, fontsize=9)


def _distinct(rows: _Rows, column: str | None) -> list[Any]:
    """The values of a column in the order of the rows, numbers in their own order."""
    found = list(dict.fromkeys(row[column] for row in rows)) if column else [None]
    return sorted(found) if all(isinstance(each, int | float) for each in found) else found


def _averaged(
    rows: _Rows, x: str, y: str, order: Sequence[Any]
) -> tuple[list[Any], list[float], list[float], list[float]]:
    """Places on the axis, and means, lowest and highest values there."""
    groups: dict[Any, list[float]] = {}
    for row in rows:
        groups.setdefault(row[x], []).append(float(row[y]))
    keys = [key for key in order if key in groups]
    numeric = all(isinstance(key, int | float) for key in order)
    places = keys if numeric else [order.index(key) for key in keys]
    values = [groups[key] for key in keys]
    return (
        places,
        [float(np.mean(each)) for each in values],
        [min(each) for each in values],
        [max(each) for each in values],
    )


def _lines(axes: Axes, rows: _Rows, x: str, y: str, index: int, count: int, label: str, order: Sequence[Any]) -> None:
    places, means, low, high = _averaged(rows, x, y, order)
    marker = _MARKERS[index % len(_MARKERS)] if len(places) <= 30 else None
    axes.plot(places, means, color=colour(index), marker=marker, markersize=5, label=label)
    axes.fill_between(places, low, high, color=colour(index), alpha=0.16, linewidth=0)
    _name_places(axes, order)


def _bars(axes: Axes, rows: _Rows, x: str, y: str, index: int, count: int, label: str, order: Sequence[Any]) -> None:
    _, means, low, high = _averaged(rows, x, y, order)
    present = {row[x] for row in rows}
    width = 0.8 / count
    places = [order.index(key) - 0.4 + width * (index + 0.5) for key in order if key in present]
    errors = np.abs([np.subtract(means, low), np.subtract(high, means)])  # the mean of equal numbers may be rounded
    axes.bar(places, means, width, color=colour(index), label=label, yerr=errors, ecolor=SOFT)
    axes.set_xticks(range(len(order)), [drawable(str(key)) for key in order])


def _points(axes: Axes, rows: _Rows, x: str, y: str, index: int, count: int, label: str, order: Sequence[Any]) -> None:
    marker = _MARKERS[index % len(_MARKERS)]
    axes.scatter(
        [row[x] for row in rows], [row[y] for row in rows], color=colour(index), marker=marker, s=18, label=label
    )


def _heatmap(axes: Axes, rows: _Rows, x: str, y: str, value: str) -> None:
    across, down = _distinct(rows, x), _distinct(rows, y)
    grid = np.zeros((len(down), len(across)))
    for row in rows:
        grid[down.index(row[y]), across.index(row[x])] = row[value]
    axes.imshow(grid, cmap="Greys", aspect="auto", vmin=0)
    across, down = ([drawable(re.sub(r"^\d+ ", "", str(name))) for name in names] for names in (across, down))
    axes.set_xticks(range(len(across)), across, rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(down)), down, fontsize=8)


def _name_places(axes: Axes, order: Sequence[Any]) -> None:
    if not all(isinstance(key, int | float) for key in order):
        axes.set_xticks(range(len(order)), [drawable(str(key)) for key in order])


def _finish(axes: Axes, x_label: str, y_label: str, *, x_log: bool, y_log: bool) -> None:
    axes.set_xlabel(x_label, color=SOFT, fontsize=9)
    axes.set_ylabel(y_label, color=SOFT, fontsize=9)
    if x_log:
        axes.set_xscale("log")
    if y_log:
        axes.set_yscale("log")
    for axis in [axes.xaxis] * x_log + [axes.yaxis] * y_log:
        low, high = axis.get_view_interval()
        if high < _DECADE_TICKS_FROM * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))  # the default one writes formulas, which are not drawn
        axis.set_minor_formatter(NullFormatter())
    if max((len(label.get_text()) for label in axes.get_xticklabels()), default=0) > 6:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(labelsize=9, labelcolor=SOFT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=LINE)
    axes.set_axisbelow(True)
