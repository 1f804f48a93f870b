"""``compare``: a table of many runs, printed and written as CSV, with a Pareto picture."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from softsearch.app.compare.run_folders import Run, find_folders, read_runs
from softsearch.app.config.options import Compare
from softsearch.app.console import plain_console, say
from softsearch.errors import ConfigError
from softsearch.report.charts import draw_pareto
from softsearch.report.folder import all_or_nothing

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


@dataclass(frozen=True)
class Comparison:
    """Runs with scores, best BLEU first, and those without."""

    scored: list[Run]
    unscored: list[Run]
    points: NDArray[np.float64]  # [scored, objectives], NaN where a run lacks a metric
    front: list[bool]  # of the scored
    objectives: dict[str, str]  # name to maximize or minimize
    warnings: list[str]


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


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Orders runs and finds those that no other one beats in BLEU, speed and size together.

    Speed is that of translating or that of training, whichever more runs have; runs that lack a metric are in the
    table, but neither on the front nor in the picture.
    """
    scored = sorted((run for run in runs if run.bleu is not None), key=lambda run: -(run.bleu or 0))
    speed = max(("translating", "training"), key=lambda name: sum(getattr(run, name) is not None for run in scored))
    objectives = {"BLEU": "maximize", f"tokens/s, {speed}": "maximize", "parameters": "minimize"}
    points = np.array([[run.bleu, getattr(run, speed), run.parameters] for run in scored], dtype=np.float64)
    points = points.reshape(len(scored), len(objectives))
    complete = np.asarray(np.isfinite(points).all(axis=1))
    warnings = _warnings(scored)
    if lacking := [run.name for run, is_complete in zip(scored, complete, strict=True) if not is_complete]:
        warnings.append(
            f"not in the picture, because speed while {speed} or parameters are missing: {', '.join(lacking)}"
        )
    front = complete & pareto_front(points, objectives)
    unscored = [run for run in runs if run.bleu is None]
    return Comparison(scored, unscored, points, front.tolist(), objectives, warnings)


def pareto_front(points: NDArray[np.floating], objectives: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which points ``[runs, objectives]`` no other one equals or beats in all objectives and beats in one, ``[runs]``.

    ``objectives`` map a name to ``maximize`` or ``minimize``; NaN beats nothing.
    """
    signed = points * np.array([1.0 if direction == "maximize" else -1.0 for direction in objectives.values()])
    as_good = (signed[:, None] >= signed[None]).all(axis=-1)  # [other, run]
    better = (signed[:, None] > signed[None]).any(axis=-1)
    return ~(as_good & better).any(axis=0)


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
        name: ["" if (value := getattr(run, field)) is None else format(value, form) for run in comparison.scored]
        for name, (field, form) in _COLUMNS.items()
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    for name in ("no.", "run", "model", *columns):
        table.add_column(name, justify="right" if name in columns else "left", overflow="fold")
    for index, (run, best) in enumerate(zip(comparison.scored, comparison.front, strict=True)):
        cells = (cells[index] for cells in columns.values())
        table.add_row(f"{index + 1}{'*' if best else ''}", run.name, run.model, *cells)
    return table


def _warnings(scored: Sequence[Run]) -> list[str]:
    """Reasons why these scores must not be compared."""

    def listed(values: Iterable[str]) -> str:
        return "; ".join(sorted(value or "unknown" for value in values))

    warnings = []
    evaluated = {run.test_set for run in scored if run.translating is not None}
    trained = {run.test_set for run in scored if run.translating is None}
    signatures = {run.signature for run in scored}
    for what, values in (("test sets", evaluated), ("test sets", trained), ("BLEU signatures", signatures)):
        if len(values) > 1:
            warnings.append(f"the runs have different {what}, their scores must not be compared: {listed(values)}")
    if evaluated and trained:
        warnings.append(
            f"training and evaluation name their test sets differently ({listed(trained)}; {listed(evaluated)}): "
            "compare their scores only if that is the same text"
        )
    return warnings
