"""``compare``: a table of many runs, printed and written as CSV, with a Pareto picture."""

import csv
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.table import Table

from softsearch.app.compare.comparison import Comparison, compare_runs
from softsearch.app.compare.run_folders import find_folders, read_runs
from softsearch.app.config.options import Compare
from softsearch.app.console import plain_console, say
from softsearch.errors import ConfigError
from softsearch.report.folder import all_or_nothing
from softsearch.report.pareto import draw_pareto

_WIDE = 1000  # characters; of a table that is piped into a file
_COLUMNS = {  # of the table: the field of a run and its format
    "BLEU": ("bleu", ".1f"),
    "chrF": ("chrf", ".1f"),
    "TER": ("ter", ".1f"),
    "translating, tokens/s": ("translating", ",.0f"),
    "training, tokens/s": ("training", ",.0f"),
    "parameters": ("parameters", ",.0f"),
    "bytes": ("size_bytes", ",.0f"),
}


def compare(options: Compare) -> None:
    """Prints a table of the runs and writes it with a Pareto picture to the command's folder.

    Raises:
        ConfigError: ``runs`` names no folder, or none of them has scores.
    """
    comparison = compare_runs(read_runs(find_folders(options.runs), options.split))
    if not comparison.scored:
        reasons = "; ".join(f"{run.folder}: {run.missing}" for run in comparison.unscored)
        raise ConfigError(f"runs: no run has scores ({reasons}); name folders of finished runs")
    print_comparison(comparison)
    with all_or_nothing(options.run_dir) as new:
        names = ", ".join(write_comparison(comparison, new))
    say(f"written to {options.run_dir}: {names}")


def write_comparison(comparison: Comparison, folder: Path) -> list[str]:
    """Writes ``results.csv`` and, where there are two points, ``pareto.png``; returns their names."""
    runs = [*comparison.scored, *comparison.unscored]
    front = [*comparison.front, *[False] * len(comparison.unscored)]
    with (folder / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["number", "pareto", *asdict(runs[0])])
        writer.writeheader()
        for number, (run, best) in enumerate(zip(runs, front, strict=True), 1):
            writer.writerow({"number": number, "pareto": best, **asdict(run)})
    complete = np.isfinite(comparison.points).all(axis=1)
    if complete.sum() < 2:
        return ["results.csv"]
    numbers = [int(index) + 1 for index in np.flatnonzero(complete)]
    best = np.array(comparison.front)[complete].tolist()
    draw_pareto(comparison.points[complete], numbers, comparison.objectives, best, folder / "pareto.png")
    return ["results.csv", "pareto.png"]


def print_comparison(comparison: Comparison) -> None:
    """Prints the table, warnings, and the runs without scores."""
    console = plain_console()
    if not console.is_terminal:
        console = plain_console(width=_WIDE)
    console.print(_table(comparison))
    for warning in comparison.warnings:
        say(f"warning: {warning}")
    for run in comparison.unscored:
        say(f"no scores: {run.name}: {run.missing}")


def _table(comparison: Comparison) -> Table:
    """The runs with their metrics; metrics that none has are left out."""
    table = Table(title="best BLEU first, * on the Pareto front of BLEU, speed and size", title_justify="left")
    columns = {
        name: [_format(getattr(run, field), form) for run in comparison.scored]
        for name, (field, form) in _COLUMNS.items()
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    for name in ("no.", "run", "model", *columns):
        table.add_column(name, justify="right" if name in columns else "left", overflow="fold")
    for index, (run, best) in enumerate(zip(comparison.scored, comparison.front, strict=True)):
        cells = (cells[index] for cells in columns.values())
        table.add_row(f"{index + 1}{'*' if best else ''}", run.name, run.model, *cells)
    return table


def _format(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
