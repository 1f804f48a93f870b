"""An evaluation report as one HTML file that a browser shows without a network."""

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from softsearch.errors import InputError
from softsearch.evaluation.schema import Report
from softsearch.report.charts import MARKERS
from softsearch.report.page.figures import draw_figures

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
    """Writes ``report.html`` and returns its path.

    Args:
        report: with at least one system.
        folder: of the report, where its pictures are; they become part of the page.

    Raises:
        InputError: a picture that the report names is not in the folder.
    """
    style, script, template = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "page.html.jinja")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_clean
    )
    environment.filters |= {"image": lambda file: _data_url(folder, file), "speed": _speed}
    counts = dict(sorted({r.name: r.sentences for system in report.systems for r in system.by_length}.items()))
    text = environment.from_string(template).render(
        report=report,
        systems=report.systems,
        metrics={key: _metric(key) for system in report.systems for key in system.scores},
        signatures=_signatures(report),
        counts=counts,
        comparisons={(c.system, c.metric): c for c in report.comparisons},
        figures={name: _clean(drawing) for name, drawing in draw_figures(report, counts).items()},
        markers=list(MARKERS.values()),
        style=style,
        script=script,
        style_hash=_hash(style),
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


def _speed(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


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
