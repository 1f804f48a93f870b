"""``compare``: a table of many runs, printed and written as CSV, with a Pareto picture."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import ge
from pathlib import Path

import numpy as np
from rich.table import Table

from softsearch.app.compare.run_folders import Run, find_folders, read_runs
from softsearch.app.config.options import Compare
from softsearch.app.console import print_table, say
from softsearch.app.results import write_rows
from softsearch.errors import ConfigError
from softsearch.report.charts import draw_pareto
from softsearch.report.folder import all_or_nothing

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
    """Runs side by side."""

    runs: list[Run]  # best BLEU first, those without scores last
    points: dict[int, list[float]]  # of the picture: number of a run to its values of the objectives
    objectives: dict[str, str]  # name to maximize or minimize
    warnings: list[str]


def compare(options: Compare) -> None:
    """Prints a table of the runs and writes it with a Pareto picture to the command's folder.

    Raises:
        ConfigError: ``runs`` names no folder, or none of them has scores.
    """
    comparison = compare_runs(read_runs(find_folders(options.runs), options.split))
    if comparison.runs[0].bleu is None:
        reasons = "; ".join(f"{run.folder}: {run.missing}" for run in comparison.runs)
        raise ConfigError(f"runs: no run has scores ({reasons}); name folders of finished runs")
    print_comparison(comparison)
    with all_or_nothing(options.run_dir) as new:
        names = ", ".join(write_comparison(comparison, new))
    say(f"written to {options.run_dir}: {names}")


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Orders runs and marks those that no other one beats in BLEU, speed and size together.

    Speed is that of translating or that of training, whichever more runs have; runs that lack a metric are in the
    table, but neither on the front nor in the picture.
    """
    runs = sorted(runs, key=lambda run: math.inf if run.bleu is None else -run.bleu)
    runs = [replace(run, number=number) for number, run in enumerate(runs, 1)]
    scored = [run for run in runs if run.bleu is not None]
    speed = max(("translating", "training"), key=lambda name: sum(getattr(run, name) is not None for run in scored))
    objectives = {"BLEU": "maximize", f"tokens/s, {speed}": "maximize", "parameters": "minimize"}
    points = {run.number: [getattr(run, field) for field in ("bleu", speed, "parameters")] for run in scored}
    points = {number: point for number, point in points.items() if None not in point}
    front = pareto_front({number: [bleu, rate, -size] for number, (bleu, rate, size) in points.items()})
    warnings = _warnings(scored)
    if lacking := [run.name for run in scored if run.number not in points]:
        warnings.append(
            f"not in the picture, because speed while {speed} or parameters are missing: {', '.join(lacking)}"
        )
    return Comparison([replace(run, pareto=run.number in front) for run in runs], points, objectives, warnings)


def pareto_front(points: Mapping[int, Sequence[float]]) -> set[int]:
    """The keys of the points that no other one equals or exceeds in all objectives and exceeds in one."""
    return {
        key
        for key, point in points.items()
        if not any(other != point and all(map(ge, other, point)) for other in points.values())
    }


def write_comparison(comparison: Comparison, folder: Path) -> list[str]:
    """Writes ``results.csv`` and, if there are two points, ``pareto.png``; returns their names."""
    runs, points = comparison.runs, comparison.points
    write_rows(folder / "results.csv", list(map(asdict, runs)))
    if len(points) < 2:
        return ["results.csv"]
    front = [run.pareto for run in runs if run.number in points]
    draw_pareto(np.array(list(points.values())), list(points), comparison.objectives, front, folder / "pareto.png")
    return ["results.csv", "pareto.png"]


def print_comparison(comparison: Comparison) -> None:
    """Prints the table, warnings, and the runs without scores."""
    scored = [run for run in comparison.runs if run.bleu is not None]
    table = Table(title="best BLEU first, * on the Pareto front of BLEU, speed and size", title_justify="left")
    columns = {  # those that any run has
        name: ["" if (value := getattr(run, field)) is None else format(value, form) for run in scored]
        for name, (field, form) in _COLUMNS.items()
        if any(getattr(run, field) is not None for run in scored)
    }
    for name in ("no.", "run", "model", *columns):
        table.add_column(name, justify="right" if name in columns else "left", overflow="fold")
    for run, *cells in zip(scored, *columns.values(), strict=True):
        table.add_row(f"{run.number}{'*' * run.pareto}", run.name, run.model, *cells)
    print_table(table)
    for warning in comparison.warnings:
        say(f"warning: {warning}")
    for run in comparison.runs[len(scored) :]:
        say(f"no scores: {run.name}: {run.missing}")


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
