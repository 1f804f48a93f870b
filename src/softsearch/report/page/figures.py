"""The figures of a report, each with its values as a table for those who cannot see it."""

from collections.abc import Callable, Mapping

from softsearch.evaluation.schema import LengthRange, Report, Score, SearchPoint, SystemReport
from softsearch.report.page.charts import Axis, Point, Series, category_axis, line_chart, linear_axis, log_axis
from softsearch.report.page.markup import Markup, join, tag
from softsearch.report.page.tables import table

Systems = Mapping[int, SystemReport]  # by their numbers, which are those of their colours


def figures(report: Report) -> Markup:
    """All figures that the report has values for."""
    measured = {number: system for number, system in enumerate(report.systems) if system.by_length}
    searched = {number: system for number, system in enumerate(report.systems) if system.search_curve}
    return join(
        _bleu_by_length(measured) if measured else "",
        _search_curve(searched) if searched else "",
        _length_ratios(measured) if measured else "",
    )


def _bleu_by_length(systems: Systems) -> Markup:
    """Bahdanau et al. 2015, figure 2, with the intervals that it lacks."""
    bounds = [bound for s in systems.values() for r in s.by_length for bound in (r.bleu.value, r.bleu.low, r.bleu.high)]
    return _by_length(
        "bleu-by-length",
        "BLEU by the length of the source. Bands are 95 % bootstrap intervals, n is the number of sentences.",
        systems,
        linear_axis("BLEU", bounds),
        lambda r: r.bleu,
        lambda r: f"{r.bleu.value:.1f} ({r.bleu.low:.1f} to {r.bleu.high:.1f})",
    )


def _length_ratios(systems: Systems) -> Markup:
    return _by_length(
        "length-ratio",
        "Words of the translations for each word of the references; below 1 translations are too short.",
        systems,
        linear_axis("length ratio", [1.0, *(r.length_ratio for s in systems.values() for r in s.by_length)]),
        lambda r: r.length_ratio,
        lambda r: f"{r.length_ratio:.3f}",
        level=1.0,
    )


def _by_length(
    name: str,
    caption: str,
    systems: Systems,
    y: Axis,
    value: Callable[[LengthRange], Score | float],
    say: Callable[[LengthRange], str],
    *,
    level: float | None = None,
) -> Markup:
    """A chart over the ranges of source lengths, whose names sort by length."""
    counts = {r.name: r.sentences for system in systems.values() for r in system.by_length}
    ranges = sorted(counts)

    def point(system: SystemReport, found: LengthRange) -> Point:
        note = f"{system.name}, {found.name} words: {say(found)}"
        place, height = ranges.index(found.name), value(found)
        if isinstance(height, Score):
            return Point(place, height.value, height.low, height.high, note)
        return Point(place, height, note=note)

    x = category_axis("words of the source", [f"{span}\nn={counts[span]:,}" for span in ranges])
    series = [Series(s.name, number, [point(s, r) for r in s.by_length]) for number, s in systems.items()]
    cells = [{r.name: say(r) for r in system.by_length} for system in systems.values()]
    rows = [[span, f"{counts[span]:,}", *(cell.get(span, "") for cell in cells)] for span in ranges]
    drawing = line_chart(caption, series, x, y, level=level)
    return _figure(name, drawing, caption, table(caption, ["words", "n", *(s.name for s in systems.values())], rows))


def _search_curve(systems: Systems) -> Markup:
    points = [(system, point) for system in systems.values() for point in system.search_curve]
    caption = (
        "What a wider search costs and brings. log p and score are means over the best hypotheses, in nats; a search "
        "error is a sentence for which a better hypothesis is known."
    )
    series = [
        Series(s.name, number, [Point(p.seconds, p.bleu, note=_say(s, p), label=p.name) for p in s.search_curve])
        for number, s in systems.items()
    ]
    x = log_axis("seconds for the test set", [point.seconds for _, point in points])
    drawing = line_chart(caption, series, x, linear_axis("BLEU", [point.bleu for _, point in points]))
    rows = [
        [
            f"{system.name}, {point.name}" if len(systems) > 1 else point.name,
            f"{point.bleu:.2f}",
            f"{point.mean_log_prob:.3f}",
            f"{point.mean_score:.3f}",
            f"{point.seconds:,.1f}",
            f"{point.empty:.1%}",
            "" if point.search_errors is None else f"{point.search_errors:.1%}",
        ]
        for system, point in points
    ]
    values = table(caption, ["search", "BLEU", "log p", "score", "seconds", "empty", "errors"], rows)
    return _figure("search-curve", drawing, caption, values)


def _say(system: SystemReport, point: SearchPoint) -> str:
    return f"{system.name}, {point.name}: {point.bleu:.2f} BLEU in {point.seconds:,.1f} seconds"


def _figure(name: str, drawing: Markup, caption: str, values: Markup) -> Markup:
    shown = tag("details", tag("summary", "values"), values)
    return tag("figure", drawing, tag("figcaption", caption), shown, id=name)
