"""``compare``: a table of training runs, evaluations and sweeps, printed and written as CSV, with a Pareto front."""

import glob
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.app.config.validation import nearest
from softsearch.app.console import echo
from softsearch.app.results import METRICS, show_tables, write_rows
from softsearch.errors import ConfigError
from softsearch.evaluation.schema import REPORT, MetricFacts, all_or_nothing
from softsearch.evaluation.text_checks import Languages, language_problems
from softsearch.extras.sweep.options import Compare
from softsearch.report.charts import draw_pareto, pareto_front
from softsearch.report.curves import CURVES, Points, draw_curves, read_points
from softsearch.report.drawing import COLOURS
from softsearch.report.tables import Table, check_table_name
from softsearch.text.plain_values import parse, read_json

_MAX_NUMBER = 1e18
_SWEEP = "results.json"
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_COLUMNS = {  # field of a run -> column after the scores
    "translating": "translating, tokens/s",
    "training": "training, tokens/s",
    "parameters": "parameters",
    "size_bytes": "bytes",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A system that was trained or evaluated."""

    number: int = 0  # number in the table
    pareto: bool = False  # whether it is on the Pareto front
    name: str = ""
    folder: Path
    model: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    facts: dict[str, MetricFacts] = field(default_factory=dict)  # of the scores
    signatures: dict[str, str] = field(default_factory=dict)
    translating: float | None = None  # target tokens translated per second
    training: float | None = None  # target tokens trained per second
    parameters: int | None = None
    size_bytes: int | None = None
    test_set: str = ""
    languages: Languages = ("", "")
    missing: str = ""  # why there are no scores


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
        with suppress(*_UNREADABLE):  # an evaluation has no curves
            curves[f"{run.number} {run.name}"] = read_points(run.folder / "metrics.csv")
    if curves:
        draw_curves(dict(list(curves.items())[: len(COLOURS)]), comparison.facts, folder / CURVES)
    return [name for name in ("results.csv", "pareto.png", CURVES) if (folder / name).is_file()]


def _row(run: Run, comparison: Comparison) -> dict[str, Any]:
    """Returns a run's fields, with a column for every metric of any run."""
    row = asdict(run)
    scores = {name: row["scores"].get(name) for name in comparison.facts}
    row |= {"signature": run.signatures.get(comparison.metric, "")}
    return {k: v for k, v in (row | scores).items() if k not in ("scores", "facts", "signatures", "languages")}


def print_comparison(comparison: Comparison, table: Path | None = None) -> None:
    """Prints the table, warnings, and the runs without scores; writes the table to the file ``table``."""
    scored = [run for run in comparison.runs if run.scores]
    texts = dict.fromkeys(run.test_set for run in scored)
    tables = [_table([run for run in scored if run.test_set == text], text, comparison) for text in texts]
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
    return Table(("no.", "run", "model", *columns), rows, title, len(columns))


def find_folders(runs: Path | list[Path]) -> list[Path]:
    """Returns the folders named by ``runs``: paths, globs, or a list of both.

    Raises:
        ConfigError: ``runs`` names no folder.
    """
    patterns = runs if isinstance(runs, list) else [runs]
    if not patterns:
        raise ConfigError("runs is [], expected folders, for example runs='[logs/a,logs/b]' or runs='logs/train/*'")
    folders: list[Path] = []
    for pattern in patterns:
        is_glob = glob.has_magic(str(pattern)) and not pattern.exists()
        matches = sorted(map(Path, glob.glob(str(pattern)))) if is_glob else [pattern]  # noqa: PTH207 - may be absolute
        if not matches:
            raise ConfigError(f"runs: nothing matches {str(pattern)!r}; name folders of runs")
        matches = [path for path in matches if not path.is_file()]
        if not matches:
            problem = "matches only files" if is_glob else "is a file"
            raise ConfigError(f"runs: {str(pattern)!r} {problem}; name folders of runs")
        folders += matches
    return list(dict.fromkeys(folders))


def read_runs(folders: Iterable[Path], split: str) -> list[Run]:
    """Returns a row for every system in the folders, and a row with the reason for every folder without one.

    Folders are those of runs, whose scores on ``split`` are read, evaluations or sweeps, or contain such folders.
    """
    empty = "it has neither systems nor trials"
    runs = [run for folder in folders for run in [*_read(folder, split)] or [Run(folder=folder, missing=empty)]]
    common = os.path.commonpath([os.path.abspath(run.folder) for run in runs])  # noqa: PTH100 - links keep their names
    return [replace(run, name=_name(run, common)) for run in runs]


def _name(run: Run, common: str) -> str:
    """Returns the run's folder relative to the common folder, and its system."""
    folder = os.path.relpath(run.folder, common)
    if folder == ".":
        return run.name or Path(common).name
    return f"{folder}: {run.name}" if run.name else folder


def _read(folder: Path, split: str) -> Iterator[Run]:
    """Yields rows, named after their systems if there are any."""
    try:
        if (report := _json(folder / REPORT)) is not None and "systems" in report:
            yield from [_evaluated(folder, report, system) for system in report["systems"]]  # all or none of a file
        elif (metrics := _json(folder / METRICS)) is not None:
            yield _trained(folder, metrics, split)
        elif isinstance(trials := _json(folder / _SWEEP), list):
            yield from _swept(folder, trials, split)
        elif trials is not None:
            yield Run(
                folder=folder,
                missing=f"its {_SWEEP} belongs to a claim (softsearch reproduce), expected the folder of a run",
            )
        elif inner := [path.parent for path in sorted(folder.glob("*/*")) if path.name in (REPORT, METRICS)]:
            for run_folder in dict.fromkeys(inner):
                yield from _read(run_folder, split)
        elif not folder.is_dir():
            yield Run(folder=folder, missing="there is no such folder")
        elif (folder / "metrics.csv").is_file():
            yield Run(folder=folder, missing=f"the run has not ended: it has no {METRICS}")
        else:
            yield Run(folder=folder, missing=f"it has neither {REPORT} nor {METRICS}")
    except _UNREADABLE as error:  # the file may come from another program
        yield Run(folder=folder, missing=f"its files cannot be read: {type(error).__name__}: {error}".splitlines()[0])


def _json(path: Path) -> Any:
    """Returns the content of a file; None if it is missing."""
    return read_json(path) if path.is_file() else None


def _facts(described: Any, names: Iterable[str]) -> dict[str, MetricFacts]:
    """Returns the file's table of metrics; older files have none."""
    known = parse(described or {}, dict[str, MetricFacts], "metrics")
    return {name: known.get(name, MetricFacts(name, name != "ter", name == "exact_match")) for name in names}


def _evaluated(folder: Path, report: dict[str, Any], system: dict[str, Any]) -> Run:
    scores = {key: _finite(score["value"]) for key, score in system["scores"].items()}
    return Run(
        name=str(system["name"]),
        folder=folder,
        model=str(system["architecture"]),
        scores=scores,
        facts=_facts(report.get("metrics"), scores),
        signatures={key: _plain_signature(str(score["signature"])) for key, score in system["scores"].items()},
        translating=_number(system, "tokens_per_second"),
        parameters=_whole(system, "parameters"),
        size_bytes=_whole(system, "size_bytes"),
        test_set=str(report["test_set"]),
        languages=(str(report["src_lang"]), str(report["tgt_lang"])),
    )


def _trained(folder: Path, metrics: dict[str, Any], split: str) -> Run:
    prefix, described = f"{split}/", metrics.get("metrics")
    named = {key.removeprefix(prefix): _number(metrics, key) for key in metrics if key.startswith(prefix)}
    others = (name for name in named if "/" not in name and name not in ("loss", "aer"))
    scores = {name: score for name in described or others if (score := named.get(name)) is not None}
    if not scores:
        found = ", ".join(f"{key} {value}" for key, value in metrics.items() if isinstance(value, int | float))
        return Run(folder=folder, missing=f"{METRICS} has no scores for {split}, found {found or 'nothing'}; set split")
    return Run(
        folder=folder,
        model=str(metrics.get("model", "")),
        scores=scores,
        facts=_facts(described, scores),
        signatures={n: _plain_signature(str(metrics.get("signatures", {}).get(f"{prefix}{n}", ""))) for n in scores},
        training=_number(metrics, "train/tokens_per_second"),
        parameters=_whole(metrics, "model/parameters"),
        test_set=str(metrics.get("test_set", "")),
        languages=(str(metrics.get("src_lang", "")), str(metrics.get("tgt_lang", ""))),
    )


def _finite(value: Any) -> float:
    """Returns a number that can be drawn.

    Raises:
        ValueError, OverflowError: it is infinite, or too large.
    """
    number = float(value)
    if not abs(number) < _MAX_NUMBER:
        raise ValueError(f"{number:g} is out of range")
    return number


def _number(metrics: dict[str, Any], key: str) -> float | None:
    value = metrics.get(key)
    return None if value is None or not math.isfinite(float(value)) else _finite(value)


def _whole(metrics: dict[str, Any], key: str) -> int | None:
    value = _number(metrics, key)
    return None if value is None else int(value)


def _swept(folder: Path, trials: list[dict[str, Any]], split: str) -> Iterator[Run]:
    """Yields the trials of a sweep, from its list of folders, states and errors."""
    for trial in trials:
        trial_folder = folder / str(trial["folder"] or f"trial {trial['trial']}")
        if trial["state"] == "complete":
            yield from _read(trial_folder, split)
        else:
            last = str(trial["error"] or "").strip().splitlines()[-1:]
            yield Run(folder=trial_folder, missing=": ".join([f"trial {trial['state']}", *last]))


def _plain_signature(signature: str) -> str:
    """Returns a signature without the parts about the bootstrap interval."""
    return "|".join(part for part in signature.split("|") if not part.startswith(("bs:", "seed:")))
