"""Results of training and evaluation: ``metrics.json``, the translations, and tables."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from softsearch.app.config.options import Parts
from softsearch.app.config.validation import build
from softsearch.app.console import echo, plain_console, print_rows
from softsearch.errors import ConfigError, printable
from softsearch.evaluation.metrics import Metric, Scores
from softsearch.evaluation.schema import MetricFacts, Report, SystemReport, figures_of, three_digits
from softsearch.evaluation.test_set import HeldOutText
from softsearch.files import METRICS, REPORT, new_contents
from softsearch.report.tables import Table, best_cells, write_tables
from softsearch.text.corpus import write_lines
from softsearch.text.plain_values import read_json

SIGNIFICANT = 0.05  # p of a difference that is marked
_PERCENT = ("padding_efficiency", "outside_share")
_TAKEN = ("loss", "perplexity", "aer")  # names of values that are not scores of translations


def build_metrics(nodes: Parts) -> dict[str, Metric]:
    """Builds the metrics of the config group ``metric``.

    Raises:
        ConfigError: there is none, or one has a reserved name, is not a metric, or refuses its options.
    """
    metrics = {name: build(node) for name, node in nodes.items() if node is not None}
    for name, metric in metrics.items():
        if not isinstance(metric, Metric):
            kind = f"{Metric.__module__}.{Metric.__name__}"
            raise ConfigError(f"metric.{name} is a {type(metric).__name__}, expected a subclass of {kind}")
        if name in _TAKEN or not name.isidentifier():
            raise ConfigError(f"metric.{name}: expected another name, of letters and not one of {', '.join(_TAKEN)}")
    for name, metric in list(metrics.items())[:1]:
        if metric.higher_is_better is None:
            raise ConfigError(
                f"metric.{name} cannot be the first metric, which selects checkpoints; write metric='[bleu,{name}]'"
            )
    if not metrics:
        raise ConfigError("metric is empty, expected at least one, as in metric=bleu")
    return metrics


def write_metrics(
    folder: Path, scores: Scores, training: Mapping[str, float], *, model: str, text: HeldOutText
) -> None:
    """Writes the final metrics, the signatures of the scores, and facts for comparisons of runs."""
    folder.mkdir(parents=True, exist_ok=True)
    about_text = {"test_set": text.name, "src_lang": text.src_lang, "tgt_lang": text.tgt_lang}
    described = {"model": model, **about_text, "metrics": {n: asdict(fact) for n, fact in scores.facts.items()}}
    content = {**training, **scores.values, "signatures": scores.signatures, **described}
    (folder / METRICS).write_text(json.dumps(content, indent=2) + "\n")


def read_metrics(folder: Path) -> dict[str, float]:
    """Returns the final metrics of a run; none if it has not ended."""
    try:
        metrics: Any = read_json(folder / METRICS)
    except (OSError, ValueError):
        return {}
    return {name: v for name, v in metrics.items() if isinstance(v, int | float)} if isinstance(metrics, dict) else {}


def translations_of(split: str) -> str:
    """Returns the name of the file with the translations of a split."""
    return f"{split}.hypotheses.txt"


def write_hypotheses(folder: Path, split: str, hypotheses: Sequence[str]) -> Path:
    """Writes one translation per line; a line break inside a translation becomes a space."""
    path = folder / translations_of(split)
    write_lines(path, (line.replace("\n", " ").replace("\r", " ") for line in hypotheses))
    return path


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """Context in which the folder of a report is replaced as a whole (``softsearch.files.new_contents``).

    Raises:
        ConfigError: the disk is full or the folder is not writable; nothing was changed.
    """
    try:
        with new_contents(folder, "report") as new:
            yield new
    except OSError as error:
        raise ConfigError(
            f"cannot write the report to {folder} ({error.strerror}); free some space there, or set "
            "hydra.run.dir=FOLDER"
        ) from error


def file_name(system: str) -> str:
    """Returns a system's name as part of a file name."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows with the same keys as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def print_test(folder: Path, split: str, scores: Scores, training: Mapping[str, float]) -> None:
    """Prints the scores of a test, the metrics of training, and the paths of the written files."""
    scores = scores.prefixed(split)
    rows = ((name, _value(name, value, scores.facts)) for name, value in {**training, **scores.values}.items())
    print_rows(("metric", "value"), rows)
    for name, text in scores.signatures.items():
        echo(f"{name}: {text}")
    echo(f"translations: {folder / translations_of(split)}\nmetrics: {folder / METRICS}")


def show_tables(tables: Sequence[Table], file: Path | None, in_file: Sequence[Table] = ()) -> None:
    """Prints tables, and writes them to a file if there is one, behind those that are only ``in_file``."""
    for table in tables:
        print_rows(table.columns, table.rows, table.title, numbers=table.numbers)
    if file is not None:
        write_tables(file, [*in_file, *tables])
        echo(f"table: {file}")


def report_tables(report: Report) -> list[Table]:
    """Returns the tables of an evaluation: scores, means of seeds, searches and comparisons."""
    from softsearch.app.seeds import ScoredRun, seed_table  # a training imports this file

    # Checkpoints are in the folder checkpoints of their run.
    trained = [
        ScoredRun(s.name, Path(s.origin).parent.parent, s.search, {n: each.value for n, each in s.scores.items()})
        for s in report.systems
    ]
    seeds = seed_table(trained, report.metrics, report.test_set)
    main = next(iter(report.metrics.values()))
    curves = [_curve(system, main) for system in report.systems if system.search_curve]
    tables = [_scores(report), seeds, *curves, _comparisons(report) if report.comparisons else None]
    return [table for table in tables if table is not None]


def show_report(report: Report, folder: Path, table: Path | None = None) -> None:
    """Prints the tables and warnings of an evaluation, and the paths of its files; writes the tables to ``table``.

    The file begins with a table for papers, with a row for each system.
    """
    console = plain_console()
    show_tables(report_tables(report), table, [_paper(report)])
    for name, score in report.systems[0].scores.items():
        echo(f"{name}: {score.signature}")
    for warning in report.warnings:
        console.print(Text.assemble(("warning:", "yellow"), f" {printable(warning)}"), soft_wrap=True)
    echo(f"page: {folder / 'report.html'}\nreport: {folder / REPORT}\nmetrics: {folder / METRICS}")


def _comparisons(report: Report) -> Table:
    rows = [
        (
            c.system,
            c.baseline,
            c.metric,
            report.metrics[c.metric].show(c.difference, sign="+"),
            "< 0.001" if c.p_value < 0.001 else f"{c.p_value:.3f}",
        )
        for c in report.comparisons
    ]
    return Table(("system", "against", "metric", "difference", "p"), rows, "paired bootstrap")


def _paper(report: Report) -> Table:
    """Returns the scores with a row for each system, the best in bold type, and marks of significance."""
    found = {(c.system, c.metric) for c in report.comparisons if c.p_value < SIGNIFICANT}
    scores = {name: [system.scores.get(name) for system in report.systems] for name in report.metrics}
    scores = {name: values for name, values in scores.items() if any(values)}
    rows = []
    for row, system in enumerate(report.systems):
        cells = [
            fact.show(score.value) + "*" * ((system.name, name) in found) if (score := scores[name][row]) else ""
            for name, fact in report.metrics.items()
            if name in scores
        ]
        rows.append((system.name, *cells))
    title = f"{report.test_set}: best scores are bold"
    if report.comparisons:
        title += f"; * differs from {report.systems[0].name} (paired bootstrap, p < {SIGNIFICANT})"
    values = {name: [None if score is None else score.value for score in column] for name, column in scores.items()}
    best = best_cells(values, report.metrics, first_column=1)
    return Table(("system", *(report.metrics[name].title for name in scores)), rows, title, len(scores), best)


def _scores(report: Report) -> Table:
    rows = []
    for name, fact in report.metrics.items():
        scores = [system.scores.get(name) for system in report.systems]
        if any(scores):
            shown = (s and f"{fact.show(s.value)} ({fact.show(s.low)} to {fact.show(s.high)})" for s in scores)
            rows.append((name, *(text or "" for text in shown)))
    rows += ((title, *texts) for title, texts in figures_of(report.systems))
    return Table(
        ("metric", *(system.name for system in report.systems)), rows, f"{report.test_set}: with 95 % intervals"
    )


def _curve(system: SystemReport, metric: MetricFacts) -> Table:
    rows = []
    for point in system.search_curve:
        errors = "" if point.search_errors is None else f"{point.search_errors:.1%}"
        ratio = "" if point.length_ratio is None else f"{point.length_ratio:.3f}"
        numbers = (f"{point.mean_log_prob:.3f}", f"{point.mean_score:.3f}", f"{point.seconds:.1f}", ratio)
        rows.append((point.name, metric.show(point.quality), *numbers, f"{point.empty:.1%}", errors))
    columns = ("search", metric.title, "log p", "score", "seconds", "length ratio", "empty", "search errors")
    return Table(columns, rows, f"searches with {system.name}")


def _value(name: str, value: float, facts: Mapping[str, MetricFacts]) -> str:
    if fact := facts.get(name.rpartition("/")[2]):
        return fact.show(value)
    if name.endswith(_PERCENT):
        return f"{value:.1%}"
    return f"{value:,.0f}" if value == round(value) else three_digits(value)
