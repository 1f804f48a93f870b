"""Writes an evaluation report as one HTML file that works without a network."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from softsearch.evaluation.by_length import MIN_DRAWN
from softsearch.evaluation.schema import Heatmap, LengthRange, MetricFacts, Report, SearchPoint, figures_of
from softsearch.evaluation.units import lengths, unit_of
from softsearch.report.charts import MARKERS, draw_by_length, draw_search_curve
from softsearch.report.curves import LOSS, Points, draw_panel
from softsearch.report.drawing import style, svg
from softsearch.report.heatmap import data_url, pictures
from softsearch.runtime.heatmap import clean, style_sheet, table
from softsearch.text.vocabulary import FEATURE_TAG, without_tags

TRAINING = {"training-loss": LOSS, "training-scores": "scores on the validation set"}  # figure -> panel
_FOLDER = Path(__file__).parent
_SCRIPTS = ("beam-tree.js", "page.js")  # the first is also used by the page of softsearch web
_TAGS = re.compile(f"{FEATURE_TAG}(?: {FEATURE_TAG})+")  # one tag per feature vector


def write_page(report: Report, folder: Path, curves: Mapping[str, Points] | None = None) -> Path:
    """Writes ``report.html``, with the learning ``curves`` of systems by name, and returns its path."""
    css, script = _style(), "".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    counts = dict(sorted({r.name: r.sentences for system in report.systems for r in system.by_length}.items()))
    text = _render(
        "page.html.jinja",
        report=report,
        systems=report.systems,
        numbers={title.replace("-", "\u2212"): texts for title, texts in figures_of(report.systems)},
        metrics={key: fact for key, fact in report.metrics.items() if any(key in s.scores for s in report.systems)},
        main=next(iter(report.metrics.values())),
        sentence_metric=report.metrics[report.sentence_metric].title,
        signatures=_signatures(report),
        counts=counts,
        min_drawn=MIN_DRAWN,
        unit=unit_of(report.sources),
        comparisons={(c.system, c.metric): c for c in report.comparisons},
        figures=_draw_figures(report, counts, curves or {}),
        markers=list(MARKERS.values()),
        style=css,
        script=script,
        style_hash=_hash(css),
        script_hash=_hash(script),
        data=_translations(report),
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def heatmaps_page(heatmaps: Sequence[Heatmap]) -> str:
    """Returns an HTML page with only heatmaps."""
    return _render("samples.html.jinja", heatmaps=heatmaps, style=_style())


def _render(template: str, **values: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    environment.filters["table"] = lambda heatmap: table(heatmap.src, heatmap.tgt, heatmap.weights)
    environment.filters["pictures"] = lambda heatmap: map(data_url, pictures(heatmap))
    environment.filters["without_tags"] = lambda line: without_tags(line)[0]
    return environment.get_template(template).render(**values)


def _style() -> str:
    return (
        "".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "beam-tree.css")) + style_sheet()
    )


def _clean(value: Any) -> Any:
    """Replaces characters that an HTML file cannot hold by U+FFFD."""
    return clean(value) if type(value) is str else value  # other values are numbers or Jinja markup


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _signatures(report: Report) -> dict[str, list[str]]:
    """Returns the names of the metrics for each signature."""
    scores = [(score.signature, key) for system in report.systems for key, score in system.scores.items()]
    pairs = dict.fromkeys((signature, report.metrics[key].title) for signature, key in scores if signature)
    return {signature: [name for other, name in pairs if other == signature] for signature, _ in pairs}


def _translations(report: Report) -> dict[str, Any]:
    """Returns the data for ``page.js``."""
    metric, sources = report.metrics[report.sentence_metric], list(map(without_tags, report.sources))
    factor, sign = 100 if metric.percent else 1, 1 if metric.higher_is_better else -1
    return {
        "direction": sign,
        "unit": unit_of(report.sources),
        "lengths": lengths(report.sources),
        "languages": [report.src_lang, report.tgt_lang],
        "sources": [_TAGS.sub(lambda tags: f"{FEATURE_TAG} × {len(tags[0].split())}", plain) for plain, _ in sources],
        "into": [into for _, into in sources],
        "references": report.references,
        "systems": [
            {
                "name": s.name,
                "hypotheses": s.hypotheses,
                "scores": [round(factor * value, 1) for value in s.sentence_scores],
                "traces": s.traces,
                "heads": [list(heatmap.heads.values()) for heatmap in s.heatmaps],
            }
            for s in report.systems
        ],
    }


def _draw_figures(report: Report, counts: Mapping[str, int], points: Mapping[str, Points]) -> dict[str, str]:
    """Draws the figures that the report has values for, as SVG, by id in the page."""
    counts = {name: count for name, count in counts.items() if count >= MIN_DRAWN}
    by_length = {
        number: [r for r in system.by_length if r.name in counts]
        for number, system in enumerate(report.systems)
        if counts and system.by_length
    }
    curves = {number: system.search_curve for number, system in enumerate(report.systems) if system.search_curve}
    figures, metric, unit = {}, next(iter(report.metrics.values())), unit_of(report.sources)

    def add(name: str, figure: Figure, values: Mapping[int, Sequence[Any]], note: Callable[[Any], str]) -> None:
        notes = {n: [f"{report.systems[n].name}, {note(value)}" for value in line] for n, line in values.items()}
        figures[name] = _clean(svg(figure, name, notes))

    with style():
        if by_length:
            scores = {
                n: {r.name: (r.score.value, r.score.low, r.score.high) for r in rs} for n, rs in by_length.items()
            }
            figure = draw_by_length(
                scores, counts, metric.title, unit=unit, limits=metric.limits, least=0.05 if metric.percent else 5
            )
            add("score-by-length", figure, by_length, partial(_note, metric, unit))
            ratio = {n: {r.name: (r.length_ratio,) * 3 for r in rs} for n, rs in by_length.items()}
            figure = draw_by_length(ratio, counts, "length ratio", unit=unit, level=1.0, least=0.1)
            add("length-ratio", figure, by_length, lambda r: f"{r.name} {unit}: {r.length_ratio:.3f}")
        if curves:
            figure = draw_search_curve(curves, metric.title)
            add("search-curve", figure, curves, partial(_point_note, metric))
        learning = {system.name: points.get(system.name, {}) for system in report.systems}
        for name, title in TRAINING.items():
            if drawn := draw_panel(title, learning, report.metrics):
                add(name, drawn, {}, str)
    return figures


def _note(metric: MetricFacts, unit: str, span: LengthRange) -> str:
    value, low, high = (metric.show(x, 1) for x in (span.score.value, span.score.low, span.score.high))
    return f"{span.name} {unit}: {value} ({low} to {high})"


def _point_note(metric: MetricFacts, point: SearchPoint) -> str:
    return f"{point.name}: {metric.show(point.quality)} {metric.title} in {point.seconds:,.1f} seconds"
