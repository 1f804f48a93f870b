"""Charts of measured tables: lines, dots in named rows, points in a plane, and heatmaps.

Rows may come from several seeds, drawn as small points around their mean, and from a paper, drawn as diamonds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from softsearch.report import draw_heatmap
from softsearch.report.parts import LINE, SOFT, colour, drawable

Rows = Sequence[Mapping[str, Any]]
Columns = str | Sequence[str]
_WIDTH = 5.4  # inches; text is readable if the figure is 400 pixels wide
_PLANE, _LANE, _CELL = 2.7, 0.22, 0.23  # inches: height of lines and points, of a dot in its row, of a token
_COLOURS, _MARKERS, _DASHES = 3, "os^vX", ("-", "--", ":", "-.")
_SEED: dict[str, Any] = {"facecolors": "none", "s": 12, "linewidths": 0.8, "alpha": 0.7, "zorder": 3.5}
_PUBLISHED: dict[str, Any] = {"marker": "D", "s": 40, "facecolors": "white", "linewidths": 1.4, "zorder": 4}
_OURS = "ours"  # label of a single series
_LEGEND_WIDTH, _LEGEND_LINE = 64, 0.2  # characters per line, height of a line in inches
_DECADE_TICKS_FROM = 1000  # ratio of the ends of a logarithmic axis above which only powers of ten are ticks


@dataclass(frozen=True)
class _Point:
    """A row with words instead of keys."""

    panel: str
    series: str
    x: Any  # a number, or text
    y: Any
    value: float
    published: bool


@dataclass(frozen=True)
class _Series:
    """A series in a panel, and how it is drawn."""

    name: str
    colour: str
    dash: str
    marker: str
    points: Sequence[_Point]

    @property
    def measured(self) -> Sequence[_Point]:
        return [point for point in self.points if not point.published]

    @property
    def published(self) -> Sequence[_Point]:
        return [point for point in self.points if point.published]


def chart(
    rows: Rows,
    *,
    kind: Literal["line", "dots", "scatter", "heatmap"],
    x: Columns,
    y: str,
    value: str | None = None,
    series: str | None = None,
    panel: str | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    x_log: bool = False,
    y_log: bool = False,
    names: Mapping[str, str] | None = None,
    published: Rows = (),
) -> Figure:
    """Draws a chart of rows; call it, and save it, inside ``softsearch.report.drawing.style``.

    Args:
        rows: text and numbers by column. Rows without a value are skipped.
        kind: kind of chart. ``dots`` lists the names in ``x`` from top to bottom, with the values of ``y`` from left to
            right. A heatmap has a cell for each x and y with its ``value``, from 0 to 1, in per cent; a number before a
            name, such as ``3 the``, distinguishes equal names and is not drawn.
        x: column of the horizontal axis: numbers, or text in the order of the rows; several columns are joined.
        y: column of the vertical axis, which is text in heatmaps.
        value: column of a heatmap's values.
        series: column that determines lines and colours, at most three.
        panel: column that splits the rows into panels.
        only: values by column; rows with other values are skipped.
        x_log: whether the horizontal axis is logarithmic.
        y_log: whether the vertical axis is logarithmic.
        names: words for columns and for text in the rows, also of several columns: ``alone, en_de``.
        published: rows with the paper's numbers; those of our series have its colour.
    """
    words = names or {}

    def point(row: Mapping[str, Any], *, published: bool) -> _Point:
        title, group = (_label(row, columns, words) if columns else "" for columns in (panel, series))
        across = row[x] if isinstance(x, str) and not isinstance(row[x], str) else _label(row, x, words)
        down = row[y] if not isinstance(row[y], str) else _label(row, y, words)
        return _Point(title, group, across, down, row[value] if value else 0.0, published)

    points = [
        point(row, published=of_paper)
        for some, of_paper in ((rows, False), (published, True))
        for row in some
        if all(row.get(column) is not None for column in (y, value or y, *([x] if isinstance(x, str) else x)))
        and all(row.get(column) in values for column, values in (only or {}).items())
    ]
    labels = [words.get(column, column) for column in ("" if not isinstance(x, str) else x, y, value or "")]
    return _draw(points, kind, labels, x_log=x_log, y_log=y_log)


def _label(row: Mapping[str, Any], columns: Columns, words: Mapping[str, str]) -> str:
    """Returns words for a row's values in columns, together or one by one; a number precedes the name of its column."""
    columns = [columns] if isinstance(columns, str) else columns
    parts = [
        words.get(row[each], row[each]) if isinstance(row[each], str) else f"{row[each]:,} {words.get(each, each)}"
        for each in columns
    ]
    together = ", ".join(str(row[each]) for each in columns)
    text = words.get(together) or ", ".join(part for part in parts if part)
    return drawable(re.sub(r"^0*(\d+)-0*(\d+)$", r"\1-\2", text))  # 06-10 is written so that it sorts


def _draw(points: Sequence[_Point], kind: str, labels: Sequence[str], *, x_log: bool, y_log: bool) -> Figure:
    panels = {name: [point for point in points if point.panel == name] for name in _distinct(p.panel for p in points)}
    panels = panels or {"": []}
    series = {name: _series(own) for name, own in panels.items()}
    heights = [_height(kind, own) for own in panels.values()]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    grid = list(figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0])
    own_series = len({tuple(each.name for each in every) for every in series.values()}) > 1
    for axes, (name, own) in zip(grid, panels.items(), strict=True):
        axes.set_title(name, fontsize=10, loc="left", pad=20 if own_series else None)  # above the legend
        if kind == "heatmap":
            _heatmap(axes, own, name)
            continue
        else:
            {"line": _lines, "dots": _dots, "scatter": _points}[kind](axes, series[name])
        x_label, y_label = (labels[1], "") if kind == "dots" else labels[:2]
        _finish(axes, x_label if axes is grid[-1] else "", y_label, grid_along="x" if kind == "dots" else "y")
        _scale(axes, x_log=x_log or (kind == "dots" and y_log), y_log=y_log and kind != "dots")
    for axes in grid[1:]:  # the same range, so that panels can be compared
        if kind in {"line", "dots"}:
            (axes.sharey if kind == "line" else axes.sharex)(grid[0])
    grid[0].autoscale_view()
    if kind == "heatmap":
        figure.suptitle(f"{labels[2]}, in per cent", color=SOFT, fontsize=10)
    elif own_series:
        for axes in grid:
            _legend([axes], axes, loc="lower left", bbox_to_anchor=(0, 0.96))
    else:
        lines = _legend(grid, figure, loc="outside upper center")
        figure.set_figheight(sum(heights) + _LEGEND_LINE * lines)
    return figure


def _height(kind: str, points: Sequence[_Point]) -> float:
    if kind == "dots":
        return 0.7 + _LANE * sum(0.5 + len(series) for series in _lanes(points).values())
    return 1.1 + _CELL * len({point.y for point in points}) if kind == "heatmap" else _PLANE


def _lanes(points: Sequence[_Point]) -> dict[Any, list[str]]:
    """Returns the series at each name, from top to bottom."""
    return {x: _distinct(p.series for p in points if p.x == x) for x in _distinct(p.x for p in points)}


def _distinct(values: Any) -> list[Any]:
    """Returns the distinct values in order; numbers are sorted."""
    found = list(dict.fromkeys(values))
    return sorted(found) if all(isinstance(each, int | float) for each in found) else found


def _series(points: Sequence[_Point]) -> list[_Series]:
    """Returns the series of a panel; names that are equal up to a comma share a colour."""
    names = _distinct(point.series for point in points)
    groups = list(dict.fromkeys(name.partition(",")[0] for name in names))
    found: list[_Series] = []
    for index, name in enumerate(names):
        shade = colour(groups.index(name.partition(",")[0]) % _COLOURS)
        dash = _DASHES[sum(other.colour == shade for other in found) % len(_DASHES)]
        own = [point for point in points if point.series == name]
        found.append(_Series(name, shade, dash, _MARKERS[index % len(_MARKERS)], own))
    return found


def _lines(axes: Axes, every: Sequence[_Series]) -> None:
    order = _distinct(point.x for each in every for point in each.measured)
    named = any(isinstance(x, str) for x in order)
    places: dict[Any, float] = {x: order.index(x) if named else x for x in order}
    for each in every:
        at = _by_place(each)
        line: dict[str, Any] = {"color": each.colour, "linestyle": each.dash, "marker": each.marker, "markersize": 5}
        xs = [x for x in order if x in at]
        axes.plot([places[x] for x in xs], [np.mean(at[x]) for x in xs], label=each.name or _OURS, **line)
        _scatter(axes, [(places[x], y) for x in xs if len(at[x]) > 1 for y in at[x]], each, _SEED)
        _scatter(axes, [(places[p.x], p.y) for p in each.published if p.x in places], each, _PUBLISHED)
    if named:
        axes.set_xticks(range(len(order)), [str(x) for x in order])


def _dots(axes: Axes, every: Sequence[_Series]) -> None:
    lanes = _lanes([point for each in every for point in each.points])
    tops = np.cumsum([0.0, *(0.5 + len(names) for names in lanes.values())])
    place = {
        (x, name): top + lane
        for (x, names), top in zip(lanes.items(), tops, strict=False)
        for lane, name in enumerate(names)
    }
    for each in every:
        at = _by_place(each)
        means = [float(np.mean(values)) for values in at.values()]
        rows = [place[x, each.name] for x in at]
        axes.scatter(means, rows, color=each.colour, marker=each.marker, s=36, label=each.name or _OURS)
        seeds = [(y, place[x, each.name]) for x, values in at.items() if len(values) > 1 for y in values]
        _scatter(axes, seeds, each, _SEED)
        _scatter(axes, [(p.y, place[p.x, each.name]) for p in each.published], each, _PUBLISHED)
    middles = [top + (len(names) - 1) / 2 for top, names in zip(tops, lanes.values(), strict=False)]
    axes.set_yticks(middles, [str(x) for x in lanes])
    axes.set_ylim(tops[-1] - 0.5, -1)


def _points(axes: Axes, every: Sequence[_Series]) -> None:
    for each in every:
        xs, ys = [point.x for point in each.measured], [point.y for point in each.measured]
        axes.scatter(xs, ys, color=each.colour, marker=each.marker, s=20, alpha=0.8, label=each.name or _OURS)
        _scatter(axes, [(point.x, point.y) for point in each.published], each, _PUBLISHED)


def _by_place(series: _Series) -> dict[Any, list[float]]:
    """Returns the values of all seeds at each position."""
    found: dict[Any, list[float]] = {}
    for point in series.measured:
        found.setdefault(point.x, []).append(point.y)
    return found


def _scatter(axes: Axes, places: Sequence[tuple[float, float]], series: _Series, look: Mapping[str, Any]) -> None:
    if places:
        axes.scatter(*zip(*places, strict=True), edgecolors=series.colour, **look)


def _heatmap(axes: Axes, points: Sequence[_Point], title: str) -> None:
    across, down = _distinct(point.x for point in points), _distinct(point.y for point in points)
    grid = np.zeros((len(down), len(across)))
    for point in points:
        grid[down.index(point.y), across.index(point.x)] = point.value
    across, down = ([re.sub(r"^\d+ ", "", str(name)) for name in names] for names in (across, down))
    draw_heatmap(axes, across, down, grid)
    axes.set_title(title, fontsize=10, loc="left", pad=10)


def _legend(grid: Sequence[Axes], target: Axes | Figure, **place: Any) -> int:
    """Adds a legend of the series of some panels, and of the paper's points; returns its number of lines."""
    shown = [pair for axes in grid for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in shown}
    if any(each.get_zorder() == _PUBLISHED["zorder"] for axes in grid for each in axes.collections):
        handles["published"] = grid[0].scatter([], [], edgecolors=SOFT, **_PUBLISHED)
    if list(handles) in ([], [_OURS]):
        return 0
    columns = max(1, min(len(handles), _LEGEND_WIDTH // (max(map(len, handles)) + 5)))
    target.legend(handles.values(), handles.keys(), ncols=columns, fontsize=9, frameon=False, **place)
    return -(-len(handles) // columns)


def _finish(axes: Axes, x_label: str, y_label: str, *, grid_along: Literal["x", "y"]) -> None:
    axes.set_xlabel(x_label, color=SOFT, fontsize=10)
    axes.set_ylabel(fill(y_label, 34), color=SOFT, fontsize=10)
    axes.tick_params(labelsize=9, labelcolor=SOFT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid_along, color=LINE)
    axes.set_axisbelow(True)


def _scale(axes: Axes, *, x_log: bool, y_log: bool) -> None:
    for axis, log in ((axes.xaxis, x_log), (axes.yaxis, y_log)):
        if not log:
            continue
        (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        low, high = axis.get_view_interval()
        if high < _DECADE_TICKS_FROM * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(
            StrMethodFormatter("{x:g}")
        )  # the default formatter writes formulas, which are not rendered
        axis.set_minor_formatter(NullFormatter())
