"""Figures of the page as SVG, with a note on each of their points."""

from collections.abc import Mapping

from softsearch.evaluation.schema import LengthRange, Report, SearchPoint
from softsearch.report.charts import draw_by_length, draw_search_curve
from softsearch.report.drawing import style, svg


def draw_figures(report: Report, counts: Mapping[str, int]) -> dict[str, str]:
    """The figures that the report has values for, by their ids in the page.

    Args:
        report: whose systems are numbered in its order.
        counts: sentences of each range of source lengths, short ones first.
    """
    by_length = {number: system.by_length for number, system in enumerate(report.systems) if system.by_length}
    curves = {number: system.search_curve for number, system in enumerate(report.systems) if system.search_curve}
    figures, notes = {}, {}
    with style():
        if by_length:
            bleu = {n: {r.name: (r.bleu.value, r.bleu.low, r.bleu.high) for r in rs} for n, rs in by_length.items()}
            ratio = {n: {r.name: (r.length_ratio,) * 3 for r in rs} for n, rs in by_length.items()}
            figures["bleu-by-length"] = draw_by_length(bleu, counts, "BLEU")
            figures["length-ratio"] = draw_by_length(ratio, counts, "length ratio", level=1.0)
            notes["bleu-by-length"] = {n: [_bleu_note(r) for r in rs] for n, rs in by_length.items()}
            notes["length-ratio"] = {n: [_ratio_note(r) for r in rs] for n, rs in by_length.items()}
        if curves:
            figures["search-curve"] = draw_search_curve(curves)
            notes["search-curve"] = {n: [_search_note(point) for point in points] for n, points in curves.items()}
        named = {
            figure: {n: [f"{report.systems[n].name}, {text}" for text in texts] for n, texts in lines.items()}
            for figure, lines in notes.items()
        }
        return {name: svg(figure, name, named[name]) for name, figure in figures.items()}


def _bleu_note(span: LengthRange) -> str:
    return f"{span.name} words: {span.bleu.value:.1f} ({span.bleu.low:.1f} to {span.bleu.high:.1f})"


def _ratio_note(span: LengthRange) -> str:
    return f"{span.name} words: {span.length_ratio:.3f}"


def _search_note(point: SearchPoint) -> str:
    return f"{point.name}: {point.bleu:.2f} BLEU in {point.seconds:,.1f} seconds"
