"""``compare``: a table of training runs, evaluations and sweeps, printed and written as CSV, with a Pareto front."""

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.app import ScoredRun, all_or_nothing, echo, nearest, seed_table, show_tables, write_rows
from softsearch.errors import ConfigError
from softsearch.evaluation import MetricFacts
from softsearch.evaluation.parts import language_problems
from softsearch.extras.shared.pareto import draw_pareto, pareto_front
from softsearch.extras.sweep.options import Compare
from softsearch.extras.sweep.runs import UNREADABLE, Run, find_folders, read_runs
from softsearch.files import CURVES
from softsearch.report.parts import COLOURS, Points, Table, best_cells, check_table_name, draw_curves, read_points

_NOT_IN_ROWS = ("scores", "facts", "signatures", "languages", "trained", "search")
_COLUMNS = {  # field of a run -> column after the scores
    "translating": "translating, tokens/s",
    "training": "training, tokens/s",
    "parameters": "parameters",
    "size_bytes": "bytes",
}


@dataclass(frozen=True)
class Comparison:
    """A comparison of runs."""

    runs: list[Run]  # best first, then those without the metric, then those without scores
    metric: str  # used to rank the runs
    facts: dict[str, MetricFacts]  # of all metrics
    points: dict[int, list[float]]  # in the figure: number of a run -> its values of the objectives
    objectives: dict[str, str]  # name -> maximize or minimize
    warnings: list[str]


def compare(options: Compare) -> None:
    """Prints a table of the runs and writes it, with a figure of the Pareto front, to the command's folder.

    Raises:
        ConfigError: ``runs`` names no folder, no run has scores or a score of ``rank_by``, or the name of ``table``
            is wrong.
    """
    check_table_name(options.table)
    comparison = compare_runs(read_runs(find_folders(options.runs), options.split), options.rank_by)
    print_comparison(comparison, options.table)
    with all_or_nothing(options.run_dir) as new:
        names = ", ".join(write_comparison(comparison, new))
    echo(f"written to {options.run_dir}: {names}")


def compare_runs(runs: Sequence[Run], rank_by: str | None = None) -> Comparison:
    """Ranks runs and marks the Pareto front of score, speed and size among runs on the same test set.

    The test set of most runs comes first, and only its runs are in the figure. Scores are those of ``rank_by``, or of
    the first metric that most runs have. Speed is that of translation or of training, whichever more runs have; runs
    without one of the values are in the table, but not in the figure.

    Raises:
        ConfigError: no run has scores, or a score of ``rank_by``.
    """
    facts = {name: fact for run in runs for name, fact in run.facts.items()}
    ranking = [name for name, fact in facts.items() if fact.higher_is_better is not None]
    if not ranking:
        reasons = "; ".join(f"{run.folder}: {run.missing}" for run in runs)
        raise ConfigError(f"runs: no run has scores ({reasons}); name folders of finished runs")
    if rank_by is not None and rank_by not in ranking:
        problem = "which has no better direction" if rank_by in facts else "which no run has"
        raise ConfigError(f"rank_by is {rank_by!r}, {problem}; {nearest(rank_by, ranking)}")
    metric = rank_by or max(ranking, key=lambda name: sum(name in run.scores for run in runs))
    sign = -1 if facts[metric].higher_is_better else 1
    test_sets = list(dict(Counter(run.test_set for run in runs if run.scores).most_common()))

    def place(run: Run) -> tuple[float, float]:
        found = test_sets.index(run.test_set) if run.scores else math.inf
        return found, sign * run.scores.get(metric, sign * math.inf)

    runs = sorted(runs, key=place)
    runs = [replace(run, number=number) for number, run in enumerate(runs, 1)]
    scored = [run for run in runs if run.scores]
    speed = max(("translating", "training"), key=lambda name: sum(getattr(run, name) is not None for run in scored))
    values = {run.number: [run.scores.get(metric), getattr(run, speed), run.parameters] for run in scored}
    points = {number: [float(x) for x in point if x is not None] for number, point in values.items()}
    points = {number: point for number, point in points.items() if len(point) == 3}
    gains = {number: [-sign * score, rate, -size] for number, (score, rate, size) in points.items()}
    groups = [{run.number for run in scored if run.test_set == test_set} for test_set in test_sets]
    front = set().union(*(pareto_front({n: gain for n, gain in gains.items() if n in group}) for group in groups))
    direction = "maximize" if facts[metric].higher_is_better else "minimize"
    objectives = {facts[metric].title: direction, f"tokens/s, {speed}": "maximize", "parameters": "minimize"}
    warnings = []
    for test_set, group in zip(test_sets, groups, strict=True):
        used = {run.signatures.get(metric) or "unknown" for run in scored if run.number in group}
        if len(used) > 1:
            where = f"on {test_set or 'an unknown test set'} " * (len(test_sets) > 1)
            different = "; ".join(sorted(used))
            warnings.append(
                f"{where}the {facts[metric].title} signatures differ, so the scores are not comparable: {different}"
            )
    first, *others = [run for run in scored if all(run.languages)] or scored  # older runs have no languages
    translated = {f"that of {run.name}": run.languages for run in others}
    warnings += language_problems(f"the text of {first.name}", first.languages, translated)
    if lacking := [run.name for run in scored if run.number not in points]:
        needed = f"{facts[metric].title}, speed while {speed} or parameters"
        warnings.append(f"not in the figure, because {needed} are missing: {', '.join(lacking)}")
    runs = [replace(run, pareto=run.number in front) for run in runs]
    points = {number: point for number, point in points.items() if number in groups[0]}
    return Comparison(runs, metric, facts, points, objectives, warnings)


def write_comparison(comparison: Comparison, folder: Path) -> list[str]:
    """Writes ``results.csv``, ``pareto.png`` for at least two points, ``curves.png`` for trainings; returns names."""
    runs, points = comparison.runs, comparison.points
    write_rows(folder / "results.csv", [_row(run, comparison) for run in runs])
    if len(points) > 1:
        front = [run.pareto for run in runs if run.number in points]
        draw_pareto(np.array(list(points.values())), list(points), comparison.objectives, front, folder / "pareto.png")
    curves: dict[str, Points] = {}
    for run in runs:
        with suppress(*UNREADABLE):  # an evaluation has no curves
            curves[f"{run.number} {run.name}"] = read_points(run.folder / "metrics.csv")
    if curves:
        draw_curves(dict(list(curves.items())[: len(COLOURS)]), comparison.facts, folder / CURVES)
    return [name for name in ("results.csv", "pareto.png", CURVES) if (folder / name).is_file()]


def _row(run: Run, comparison: Comparison) -> dict[str, Any]:
    """Returns a run's fields, with a column for every metric of any run."""
    row = asdict(run)
    scores = {name: row["scores"].get(name) for name in comparison.facts}
    row |= {"signature": run.signatures.get(comparison.metric, "")}
    return {k: v for k, v in (row | scores).items() if k not in _NOT_IN_ROWS}


def print_comparison(comparison: Comparison, table: Path | None = None) -> None:
    """Prints the table, warnings, and the runs without scores; writes the table to the file ``table``."""
    scored = [run for run in comparison.runs if run.scores]
    texts = dict.fromkeys(run.test_set for run in scored)
    tables = [_table([run for run in scored if run.test_set == text], text, comparison) for text in texts]
    for text in texts:
        trained = [
            ScoredRun(run.name, run.trained or run.folder, run.search, run.scores)
            for run in scored
            if run.test_set == text
        ]
        seeds = seed_table(trained, comparison.facts, text or "unknown text")
        tables += [] if seeds is None else [seeds]
    show_tables(tables, table)
    for warning in comparison.warnings:
        echo(f"warning: {warning}")
    for run in comparison.runs[len(scored) :]:
        echo(f"no scores: {run.name}: {run.missing}")


def _table(runs: Sequence[Run], test_set: str, comparison: Comparison) -> Table:
    columns = {
        fact.title: [fact.show(run.scores[name], 1) if name in run.scores else "" for run in runs]
        for name, fact in comparison.facts.items()
    }
    for name, heading in _COLUMNS.items():
        values = [getattr(run, name) for run in runs]
        if any(value is not None for value in values):
            columns[heading] = ["" if value is None else f"{value:,.0f}" for value in values]
    names = [(f"{run.number}{'*' * run.pareto}", run.name, run.model) for run in runs]
    rows = [(*name, *cells) for name, *cells in zip(names, *columns.values(), strict=True)]
    title = comparison.facts[comparison.metric].title
    title = f"{test_set or 'unknown text'}: best {title} first, * on the Pareto front of {title}, speed and size"
    scores = {name: [run.scores.get(name) for run in runs] for name in comparison.facts}
    best = best_cells(scores, comparison.facts, first_column=3, digits=1)
    return Table(("no.", "run", "model", *columns), rows, title, len(columns), best)
