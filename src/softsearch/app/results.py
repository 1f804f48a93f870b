"""Results of training and evaluation: ``metrics.json``, the translations, and tables."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from softsearch.app.console import plain_console, print_rows, say
from softsearch.errors import printable
from softsearch.evaluation.metrics import Scores
from softsearch.evaluation.schema import REPORT, Report, Score, SystemReport
from softsearch.text.plain_values import read_json

METRICS = "metrics.json"
_PERCENT = ("exact_match", "padding_efficiency", "outside_share")
_FACTS = {  # rows about a system: the fields of its report
    "sentences without unknown words": "no_unk_sentences",
    "-log p of a reference token": "nll",
    "length ratio": "length_ratio",
    "alignment error rate": "aer",
    "sentences/s": "sentences_per_second",
    "tokens/s": "tokens_per_second",
    "parameters": "parameters",
    "bytes": "size_bytes",
}


def write_metrics(folder: Path, metrics: Mapping[str, float], signatures: Mapping[str, str]) -> None:
    """Writes the final metrics and the signatures of the scores among them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRICS).write_text(json.dumps({**metrics, "signatures": dict(signatures)}, indent=2) + "\n")


def read_metrics(folder: Path) -> dict[str, float]:
    """The final metrics of a run; none if it has not ended."""
    try:
        metrics: Any = read_json(folder / METRICS)
    except (OSError, ValueError):
        return {}
    return {name: v for name, v in metrics.items() if isinstance(v, int | float)} if isinstance(metrics, dict) else {}


def write_hypotheses(folder: Path, split: str, hypotheses: Sequence[str]) -> Path:
    """Writes one translation per line; a line break inside a translation becomes a space."""
    path = folder / f"{split}.hypotheses.txt"
    text = "".join(line.replace("\n", " ").replace("\r", " ") + "\n" for line in hypotheses)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows with the same keys as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def report(folder: Path, split: str, hypotheses: Sequence[str], scores: Scores, training: Mapping[str, float]) -> None:
    """Writes ``metrics.json`` and the translations of a test, and prints them with the training's metrics."""
    values, signatures = scores.prefixed(split)
    metrics = {**training, **values}
    write_metrics(folder, metrics, signatures)
    path = write_hypotheses(folder, split, hypotheses)
    print_rows(("metric", "value"), ((name, _value(name, value)) for name, value in metrics.items()))
    for name, text in signatures.items():
        say(f"{name}: {text}")
    say(f"translations: {path}\nmetrics: {folder / METRICS}")


def show_report(report: Report, folder: Path) -> None:
    """Prints an evaluation's tables, warnings and the paths of its files."""
    console = plain_console()
    console.print(_score_table(report))
    for system in report.systems:
        if system.search_curve:
            _print_curve(system)
    if report.comparisons:
        columns = ("system", "against", "metric", "difference", "p")
        rows = (
            (c.system, c.baseline, c.metric, f"{c.difference:+.2f}", f"{c.p_value:.3f}") for c in report.comparisons
        )
        print_rows(columns, rows, title="paired bootstrap")
    for name, score in report.systems[0].scores.items():
        say(f"{name}: {score.signature}")
    for warning in report.warnings:
        console.print(Text.assemble(("warning:", "yellow"), f" {printable(warning)}"), soft_wrap=True)
    say(f"page: {folder / 'report.html'}\nreport: {folder / REPORT}\nmetrics: {folder / METRICS}")


def _score_table(report: Report) -> Table:
    table = Table("metric", title="with 95 % intervals")
    for system in report.systems:
        table.add_column(system.name, overflow="fold")  # names may begin alike
    for name in dict.fromkeys(name for system in report.systems for name in system.scores):
        table.add_row(name, *(_interval(name, system.scores.get(name)) for system in report.systems))
    for name, field in _FACTS.items():
        values = [getattr(system, field) for system in report.systems]
        if any(value is not None for value in values):
            table.add_row(name, *("" if v is None else f"{v:,}" if isinstance(v, int) else f"{v:,.3f}" for v in values))
    return table


def _print_curve(system: SystemReport) -> None:
    rows = []
    for point in system.search_curve:
        errors = "" if point.search_errors is None else f"{point.search_errors:.1%}"
        numbers = (f"{point.bleu:.2f}", f"{point.mean_log_prob:.3f}", f"{point.mean_score:.3f}", f"{point.seconds:.1f}")
        rows.append((point.name, *numbers, f"{point.empty:.1%}", errors))
    columns = ("search", "BLEU", "log p", "score", "seconds", "empty", "search errors")
    print_rows(columns, rows, title=f"searches with {system.name}")


def _interval(name: str, score: Score | None) -> str:
    if score is None:
        return ""
    factor, unit = (100, " %") if name.endswith(_PERCENT) else (1, "")
    return f"{score.value * factor:.2f}{unit} ({score.low * factor:.2f} to {score.high * factor:.2f})"


def _value(name: str, value: float) -> str:
    if name.endswith(_PERCENT):
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"
