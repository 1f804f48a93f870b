"""Means and standard deviations of runs that differ in their seed alone."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from softsearch.evaluation.schema import MetricFacts
from softsearch.files import open_file
from softsearch.report.tables import Table, best_cells

_MOST_BYTES = 1 << 20
_TOP = re.compile(r"^(seed|run_dir): (.+)\n", re.MULTILINE)
# What differs between seeds, or changes no number; the text is compared, so that no file can be costly to read.
_OTHER = re.compile(
    r"^(?:name|seed|run_dir|cache_dir|logger|resume|overwrite):.*\n(?:[ -].*\n)*|^  exact_resume:\n(?:    .*\n)*",
    re.MULTILINE,
)


class ScoredRun(NamedTuple):
    """A system with its scores, and the folder in which it was trained."""

    name: str
    folder: Path
    search: str  # scores of different searches have no common mean
    scores: Mapping[str, float]


def seed_table(runs: Sequence[ScoredRun], facts: Mapping[str, MetricFacts], text: str) -> Table | None:
    """Returns scores with means and sample standard deviations over seeds; None if no system has several seeds."""
    groups: dict[tuple[str, ...], dict[str, ScoredRun]] = {}  # what was trained and how it translated -> seed -> run
    for number, run in enumerate(runs):
        setting, seed = _setting(run.folder) or (str(number), "")
        key: tuple[str, ...] = (setting, run.search)
        while seed in groups.get(key, {}):  # another checkpoint of the same run
            key = (*key, "")
        groups.setdefault(key, {})[seed] = run
    if all(len(group) == 1 for group in groups.values()):
        return None
    systems = [list(group.values()) for group in groups.values()]
    scores = {name: [_values(system, name) for system in systems] for name in facts}
    scores = {name: columns for name, columns in scores.items() if any(columns)}
    rows = [
        (_label(system), str(len(system)), *(_mean(facts[name], columns[row]) for name, columns in scores.items()))
        for row, system in enumerate(systems)
    ]
    means = {name: [mean(values) if values else None for values in columns] for name, columns in scores.items()}
    return Table(
        ("system", "seeds", *(facts[name].title for name in scores)),
        rows,
        f"{text}: mean and standard deviation over seeds",
        len(scores),
        best_cells(means, facts, first_column=2),
    )


def _values(system: Sequence[ScoredRun], name: str) -> list[float]:
    """Returns the scores of all seeds; none if a seed lacks the score."""
    values = [run.scores[name] for run in system if name in run.scores]
    return values if len(values) == len(system) else []


def _mean(fact: MetricFacts, values: Sequence[float]) -> str:
    if len(values) < 2:
        return fact.show(values[0]) if values else ""
    return f"{fact.show(mean(values))} ± {fact.show(stdev(values))}"


def _label(system: Sequence[ScoredRun]) -> str:
    """Returns what the names of the runs begin with, or else all names."""
    names = [run.name for run in system]
    if len(names) == 1:
        return names[0]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in same).rstrip("-_=/.: 0123456789") or ", ".join(names)


def _setting(folder: Path) -> tuple[str, str] | None:
    """Returns a run's config without its seed, folders and name, and the seed; None if the folder is not a run's."""
    try:
        with open_file(folder / "config.yaml") as file:
            text = file.read(_MOST_BYTES).decode()
        top = dict(_TOP.findall(text))
        return _OTHER.sub("", text).replace(top["run_dir"], ""), top["seed"]
    except (OSError, ValueError, KeyError):
        return None
