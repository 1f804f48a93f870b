"""Line charts as SVG whose colours are the page's, so that they follow its light or dark scheme."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from matplotlib.ticker import MaxNLocator

from softsearch.report.page.markup import Markup, join, tag

_COLOURS = 8  # classes s0 to s7 of the style sheet
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 24, 14, 54
_STEEP = 8  # pixels between two points, beyond which a line would cross a label
_MARKERS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-3.6-3.6h7.2v7.2h-7.2z", "M0-4.8 4.6 3.6H-4.6z", "M0-5 5 0 0 5-5 0z")


@dataclass(frozen=True)
class Point:
    """A value of a series."""

    x: float
    y: float
    low: float | None = None  # of the band around the line
    high: float | None = None
    note: str = ""  # shown when the pointer rests on it
    label: str = ""  # shown beside it


@dataclass(frozen=True)
class Series:
    """A line."""

    name: str
    number: int  # of its colour and marker, the same in all charts of a page
    points: Sequence[Point]


@dataclass(frozen=True)
class Axis:
    """A direction of a chart."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]  # a line break begins a second, smaller line
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value stands between low, 0, and high, 1."""
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return (value - low) / (high - low)


def linear_axis(label: str, values: Iterable[float]) -> Axis:
    """An axis with round numbers around values."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    margin = (high - low) * 0.1 or max(abs(high) * 0.1, 0.1)
    floor = 0.0 if low >= 0 else -math.inf
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(max(floor, low - margin), high + margin)
    return Axis(label, float(ticks[0]), float(ticks[-1]), [(float(tick), f"{tick:.10g}") for tick in ticks])


def log_axis(label: str, values: Iterable[float]) -> Axis:
    """A logarithmic axis around positive values."""
    found = [value for value in values if value > 0] or [1.0]
    low, high = min(found) / 1.15, max(found) * 1.15
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    low, high = max(t for t in ticks if t <= low), min(t for t in ticks if t >= high)
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) > 8:
        shown = [tick for tick in shown if math.log10(tick).is_integer()]
    return Axis(label, low, high, [(tick, f"{tick:,.10g}") for tick in shown], log=True)


def category_axis(label: str, names: Sequence[str]) -> Axis:
    """An axis with a place for each name: 0, 1, 2, ..."""
    return Axis(label, -0.4, len(names) - 0.6, list(enumerate(names)))


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, *, level: float | None = None) -> Markup:
    """A chart with its legend.

    Args:
        title: what it shows, for those who do not see it; its values belong into a table beside it.
        series: the lines; points that are not finite are left out.
        x: the horizontal axis.
        y: the vertical axis.
        level: a value of ``y`` with a dashed line.
    """
    kept = [replace(s, points=[p for p in s.points if math.isfinite(p.x) and math.isfinite(p.y)]) for s in series]
    dashed = [] if level is None else [_segment(0, 1, y.share(level), y.share(level), "level")]
    drawing = tag(
        "svg",
        _axes(x, y),
        *dashed,
        *(_band(line, x, y) for line in kept),
        *(_line(line, x, y) for line in kept),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=title,
        class_="chart",
    )
    return join(_legend(kept) if len(kept) > 1 else "", drawing)


def _place(x: float, y: float) -> tuple[float, float]:
    """Pixels of shares of the axes."""
    return _LEFT + x * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM)


def _path(places: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _segment(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    return tag("path", d=_path([_place(x1, y1), _place(x2, y2)]), class_=kind)


def _text(text: str, x: float, y: float, kind: str, **attributes: str) -> Markup:
    if not text:
        return Markup()
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind, **attributes)


def _axes(x: Axis, y: Axis) -> Markup:
    parts = []
    for value, name in y.ticks:
        left, height = _place(0, y.share(value))
        parts += [_segment(0, 1, y.share(value), y.share(value), "grid"), _text(name, left - 7, height + 4, "tick-y")]
    for value, name in x.ticks:
        place, bottom = _place(x.share(value), 0)
        first, _, second = name.partition("\n")
        parts += [_text(first, place, bottom + 16, "tick-x"), _text(second, place, bottom + 29, "tick-x small")]
    middle, upwards = _place(0.5, 0)[0], _place(0, 0.5)[1]
    turned = _text(y.label, 13, upwards, "axis", transform=f"rotate(-90 13 {upwards:.1f})")
    return join(*parts, _segment(0, 1, 0, 0, "base"), _text(x.label, middle, _HEIGHT - 6, "axis"), turned)


def _band(line: Series, x: Axis, y: Axis) -> Markup:
    known = [(p.x, p.low, p.high) for p in line.points if p.low is not None and p.high is not None]
    edges = [(x.share(at), y.share(low), y.share(high)) for at, low, high in known]
    if len(edges) < 2:
        return Markup()
    around = [_place(at, high) for at, _, high in edges] + [_place(at, low) for at, low, _ in reversed(edges)]
    return tag("path", d=_path(around) + "Z", class_=f"band {_colour(line)}")


def _line(line: Series, x: Axis, y: Axis) -> Markup:
    parts = []
    places = [_place(x.share(p.x), y.share(p.y)) for p in line.points]
    tops = [top for _, top in places]
    for turn, (point, (left, top)) in enumerate(zip(line.points, places, strict=True)):
        marker = _marker(line, tag("title", point.note), transform=f"translate({left:.1f} {top:.1f})")
        rising = turn + 1 < len(tops) and tops[turn + 1] < top - _STEEP
        anchor = "end" if left > _WIDTH - 50 else "start" if rising or left < _LEFT + 26 else "middle"
        parts += [marker, _text(point.label, left, top - 9 if _is_above(tops, turn) else top + 18, f"label {anchor}")]
    stroke = tag("path", d=_path(places), class_="line") if len(places) > 1 else Markup()
    return tag("g", stroke, *parts, class_=_colour(line))


def _is_above(tops: Sequence[float], turn: int) -> bool:
    """Whether a label is above its point, so that the line to the next one (after the last: before) misses it."""
    last = turn + 1 == len(tops)
    falls = tops[turn - 1] - tops[turn] if last else tops[turn + 1] - tops[turn]
    return falls > 0 if abs(falls) > _STEEP else turn % 2 == 1


def _marker(line: Series, *children: Markup, **attributes: str) -> Markup:
    return tag("path", *children, d=_MARKERS[line.number % len(_MARKERS)], class_="marker", **attributes)


def _colour(line: Series) -> str:
    return f"s{line.number % _COLOURS}"


def _legend(series: Sequence[Series]) -> Markup:
    entries = [tag("li", _swatch(line), tag("span", line.name, class_="name")) for line in series]
    return tag("ul", *entries, class_="legend")


def _swatch(line: Series) -> Markup:
    group = tag("g", tag("path", d="M-12 0H12", class_="line"), _marker(line), class_=_colour(line))
    return tag("svg", group, viewBox="-13 -7 26 14", aria_hidden="true", class_="swatch")
