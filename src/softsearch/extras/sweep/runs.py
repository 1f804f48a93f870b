"""Rows of ``compare``: the systems in the folders of trainings, evaluations and sweeps."""

import glob
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.evaluation import MetricFacts
from softsearch.files import METRICS, REPORT
from softsearch.text.parts import parse, read_json

_MAX_NUMBER = 1e18
_SWEEP = "results.json"
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A system that was trained or evaluated."""

    number: int = 0  # number in the table
    pareto: bool = False  # whether it is on the Pareto front
    name: str = ""
    folder: Path
    trained: Path | None = None  # where an evaluated checkpoint was trained; None: in the folder
    search: str = ""  # of an evaluation
    model: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    facts: dict[str, MetricFacts] = field(default_factory=dict)  # of the scores
    signatures: dict[str, str] = field(default_factory=dict)
    translating: float | None = None  # target tokens translated per second
    training: float | None = None  # target tokens trained per second
    parameters: int | None = None
    size_bytes: int | None = None
    test_set: str = ""
    languages: tuple[str, str] = ("", "")
    missing: str = ""  # why there are no scores


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
            yield Run(folder=folder, missing=f"the run has not ended, or has no scores: it has no {METRICS}")
        else:
            yield Run(folder=folder, missing=f"it has neither {REPORT} nor {METRICS}")
    except UNREADABLE as error:  # the file may come from another program
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
        trained=Path(str(system["origin"])).parent.parent,
        search=str(system["search"]),
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
