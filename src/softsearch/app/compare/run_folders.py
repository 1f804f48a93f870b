"""Folders of training runs, evaluations and sweeps as rows of a comparison."""

import glob
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.results import METRICS
from softsearch.errors import ConfigError
from softsearch.evaluation.schema import REPORT, plain_signature
from softsearch.text.plain_values import MOST_NESTED, read_json

_MAX_NUMBER = 1e18
_SWEEP = "results.json"
_UNREADABLE = (  # what parsing a file of somebody else raises
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
    OmegaConfBaseException, yaml.YAMLError,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Run:
    """A system that was trained or evaluated."""

    number: int = 0  # in the table
    pareto: bool = False  # whether it is on the front
    name: str = ""
    folder: Path
    model: str = ""
    bleu: float | None = None
    chrf: float | None = None
    ter: float | None = None
    translating: float | None = None  # tokens of translations a second
    training: float | None = None  # tokens of the target side a second
    parameters: int | None = None
    size_bytes: int | None = None
    test_set: str = ""
    signature: str = ""  # of BLEU
    missing: str = ""  # why there are no scores


def find_folders(runs: Path | list[Path]) -> list[Path]:
    """The folders that ``runs`` names by paths, globs, or a list of both.

    Raises:
        ConfigError: ``runs`` names no folder.
    """
    patterns = runs if isinstance(runs, list) else [runs]
    if not patterns:
        raise ConfigError("runs is [], expected folders, as in runs='[logs/a,logs/b]' or runs='logs/train/*'")
    folders: list[Path] = []
    for pattern in patterns:
        is_glob = glob.has_magic(str(pattern)) and not pattern.exists()
        matches = sorted(map(Path, glob.glob(str(pattern)))) if is_glob else [pattern]  # noqa: PTH207 - may be absolute
        if not matches:
            raise ConfigError(f"runs: nothing matches {str(pattern)!r}; name folders of runs")
        matches = [path for path in matches if not path.is_file()]
        if not matches:
            problem = "matches files only" if is_glob else "is a file"
            raise ConfigError(f"runs: {str(pattern)!r} {problem}; name folders of runs")
        folders += matches
    return list(dict.fromkeys(folders))


def read_runs(folders: list[Path], split: str) -> list[Run]:
    """A row for every system in the folders, and one with the reason for every folder that has none.

    The folders are of runs, whose scores of ``split`` are read, of evaluations, of sweeps, or hold such folders.
    """
    empty = "it lists neither systems nor trials"
    runs = [run for folder in folders for run in [*_read(folder, split)] or [Run(folder=folder, missing=empty)]]
    common = os.path.commonpath([os.path.abspath(run.folder) for run in runs])  # noqa: PTH100 - links keep their names
    return [replace(run, name=_name(run, common)) for run in runs]


def _name(run: Run, common: str) -> str:
    """The run's folder below the one that all share, and its system."""
    folder = os.path.relpath(run.folder, common)
    if folder == ".":
        return run.name or Path(common).name
    return f"{folder}: {run.name}" if run.name else folder


def _read(folder: Path, split: str) -> Iterator[Run]:
    """Rows whose names are those of their systems, if any."""
    try:
        if (report := _json(folder / REPORT)) is not None and "systems" in report:
            yield from [_evaluated(folder, report, system) for system in report["systems"]]  # all or none of a file
        elif (metrics := _json(folder / METRICS)) is not None:
            yield _trained(folder, metrics, split)
        elif (trials := _json(folder / _SWEEP)) is not None:
            yield from _swept(folder, trials, split)
        elif inner := [path.parent for path in sorted(folder.glob("*/*")) if path.name in (REPORT, METRICS)]:
            for run_folder in dict.fromkeys(inner):
                yield from _read(run_folder, split)
        elif not folder.is_dir():
            yield Run(folder=folder, missing="there is no such folder")
        elif (folder / "metrics.csv").is_file():
            yield Run(folder=folder, missing=f"the run has not ended: it has no {METRICS}")
        else:
            yield Run(folder=folder, missing=f"it has neither {REPORT} nor {METRICS}")
    except _UNREADABLE as error:
        yield Run(folder=folder, missing=f"its files cannot be read: {type(error).__name__}: {error}".splitlines()[0])


def _json(path: Path) -> Any:
    """The content of a file; None if there is no such file."""
    return read_json(path) if path.is_file() else None


def _evaluated(folder: Path, report: dict[str, Any], system: dict[str, Any]) -> Run:
    scores = {key: _finite(score["value"]) for key, score in system["scores"].items()}
    return Run(
        name=str(system["name"]),
        folder=folder,
        model=str(system["architecture"]),
        bleu=scores["bleu"],
        chrf=scores.get("chrf"),
        ter=scores.get("ter"),
        translating=_finite(system["tokens_per_second"]),
        parameters=int(_finite(system["parameters"])),
        size_bytes=int(_finite(system["size_bytes"])),
        test_set=str(report["test_set"]),
        signature=plain_signature(str(system["scores"]["bleu"].get("signature", ""))),
    )


def _trained(folder: Path, metrics: dict[str, Any], split: str) -> Run:
    if f"{split}/bleu" not in metrics:
        scores = ", ".join(name for name in metrics if name.endswith("/bleu")) or "no BLEU"
        return Run(folder=folder, missing=f"{METRICS} has no {split}/bleu, but {scores}; set split")
    bleu = float(metrics[f"{split}/bleu"])
    if not math.isfinite(bleu):
        return Run(folder=folder, missing=f"{METRICS}: {split}/bleu is {bleu}")
    bleu = _finite(bleu)
    config = _config(folder / "config.yaml")
    data = config.get("data", {})
    corpus = [data.get("_target_", "").rpartition(".")[2], *map(data.get, ("test_set", "variant", "test"))]
    parameters = _number(metrics, "model/parameters")
    return Run(
        folder=folder,
        model=str(config.get("name", "")),
        bleu=bleu,
        chrf=_number(metrics, f"{split}/chrf"),
        ter=_number(metrics, f"{split}/ter"),
        training=_number(metrics, "train/tokens_per_second"),
        parameters=None if parameters is None else int(parameters),
        test_set=" ".join(str(part) for part in [*corpus, split] if part) if any(corpus) else "",
        signature=plain_signature(str(metrics.get("signatures", {}).get(f"{split}/bleu", ""))),
    )


def _config(path: Path) -> Any:
    """The config of a run as text; without aliases, because a few can stand for any number of values."""
    if not path.is_file():
        return {}
    depth = 0
    for event in yaml.parse(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED or isinstance(event, yaml.AliasEvent):
            raise ValueError(f"{path.name} has aliases, or is nested deeper than {MOST_NESTED} levels")
    return OmegaConf.to_container(OmegaConf.load(path))


def _finite(value: Any) -> float:
    """A number that can be drawn.

    Raises:
        ValueError, OverflowError: it is infinite, or too large.
    """
    number = float(value)
    if not abs(number) < _MAX_NUMBER:
        raise ValueError(f"{number:g} is out of range")
    return number


def _number(metrics: dict[str, Any], key: str) -> float | None:
    value = float(metrics.get(key, math.nan))
    return _finite(value) if math.isfinite(value) else None


def _swept(folder: Path, trials: list[dict[str, Any]], split: str) -> Iterator[Run]:
    """The trials of a sweep, from its own list of their folders, states and errors."""
    for trial in trials:
        trial_folder = folder / str(trial["folder"] or f"trial {trial['trial']}")
        if trial["state"] == "complete":
            yield from _read(trial_folder, split)
        else:
            last = str(trial["error"] or "").strip().splitlines()[-1:]
            yield Run(folder=trial_folder, missing=": ".join([f"trial {trial['state']}", *last]))
