"""An evaluation report as one HTML file that a browser shows without a network."""

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from softsearch.errors import InputError
from softsearch.evaluation.schema import LengthRange, Report, SearchPoint
from softsearch.report.charts import MARKERS, draw_by_length, draw_search_curve
from softsearch.report.drawing import style, svg

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml"}
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_METRICS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "bleu_lc": "BLEU, lower-cased, tokenised",
    "bleu_no_unk": "BLEU, no UNK",
    "exact_match": "exact match",
}


def write_page(report: Report, folder: Path) -> Path:
    """Writes ``report.html``, with the pictures of the folder in it, and returns its path.

    Raises:
        InputError: a picture that the report names is not in the folder.
    """
    css, script, template = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "page.html.jinja")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_clean
    )
    environment.filters |= {
        "image": lambda file: _data_url(folder, file),
        "speed": lambda value: format(value, ",.0f" if value >= 10 else ".2g"),
    }
    counts = dict(sorted({r.name: r.sentences for system in report.systems for r in system.by_length}.items()))
    text = environment.from_string(template).render(
        report=report,
        systems=report.systems,
        metrics={key: _metric(key) for system in report.systems for key in system.scores},
        signatures=_signatures(report),
        counts=counts,
        comparisons={(c.system, c.metric): c for c in report.comparisons},
        figures={name: _clean(drawing) for name, drawing in _draw_figures(report, counts).items()},
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


def _clean(value: Any) -> Any:
    """Text for a page: what no HTML file can hold becomes U+FFFD."""
    return _NOT_TEXT.sub("\ufffd", value) if type(value) is str else value  # Jinja's markup has been here


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data_url(folder: Path, file: str) -> str:
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or path.suffix not in _TYPES or not path.is_file():
        raise InputError(
            f"the report's picture {file!r}: expected one of {', '.join(_TYPES)} inside {folder}; "
            "write it there before the page"
        )
    return f"data:{_TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _metric(key: str) -> str:
    return _METRICS.get(key, key.replace("_", " "))


def _signatures(report: Report) -> dict[str, list[str]]:
    """Of each signature, the metrics that were computed so."""
    pairs = {(key, s.signature): None for system in report.systems for key, s in system.scores.items() if s.signature}
    return {signature: [_metric(key) for key, other in pairs if other == signature] for _, signature in pairs}


def _translations(report: Report) -> dict[str, Any]:
    """What ``page.js`` reads."""
    return {
        "languages": [report.src_lang, report.tgt_lang],
        "sources": report.sources,
        "references": report.references,
        "systems": [
            {"name": s.name, "hypotheses": s.hypotheses, "chrf": [round(value, 1) for value in s.sentence_chrf]}
            for s in report.systems
        ],
    }


def _draw_figures(report: Report, counts: Mapping[str, int]) -> dict[str, str]:
    """The figures that the report has values for, by their ids in the page."""
    by_length = {number: system.by_length for number, system in enumerate(report.systems) if system.by_length}
    curves = {number: system.search_curve for number, system in enumerate(report.systems) if system.search_curve}
    figures: dict[str, tuple[Figure, dict[int, list[str]]]] = {}
    with style():
        if by_length:
            bleu = {n: {r.name: (r.bleu.value, r.bleu.low, r.bleu.high) for r in rs} for n, rs in by_length.items()}
            ratio = {n: {r.name: (r.length_ratio,) * 3 for r in rs} for n, rs in by_length.items()}
            notes = {n: [_bleu_note(r) for r in rs] for n, rs in by_length.items()}
            figures["bleu-by-length"] = draw_by_length(bleu, counts, "BLEU"), notes
            notes = {n: [f"{r.name} words: {r.length_ratio:.3f}" for r in rs] for n, rs in by_length.items()}
            figures["length-ratio"] = draw_by_length(ratio, counts, "length ratio", level=1.0), notes
        if curves:
            notes = {n: [_search_note(point) for point in points] for n, points in curves.items()}
            figures["search-curve"] = draw_search_curve(curves), notes
        return {
            name: svg(
                figure, name, {n: [f"{report.systems[n].name}, {text}" for text in texts] for n, texts in notes.items()}
            )
            for name, (figure, notes) in figures.items()
        }


def _bleu_note(span: LengthRange) -> str:
    return f"{span.name} words: {span.bleu.value:.1f} ({span.bleu.low:.1f} to {span.bleu.high:.1f})"


def _search_note(point: SearchPoint) -> str:
    return f"{point.name}: {point.bleu:.2f} BLEU in {point.seconds:,.1f} seconds"
