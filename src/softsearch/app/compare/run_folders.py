"""Folders of runs as rows of a comparison: of training, of evaluation, and of sweeps of either."""

import glob
import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import REPORT
from softsearch.report.comparison import Run
from softsearch.training.run_folder import METRICS

_SWEEP = "results.json"
_RESAMPLING = ("bs:", "seed:")  # parts of a signature that say how the interval was found, not the score


def find_folders(runs: object) -> list[Path]:
    """The folders that ``runs`` names: a path, a glob, or a list of both.

    Raises:
        ConfigError: it names none.
    """
    wanted = [runs] if isinstance(runs, str) else runs
    if not isinstance(wanted, list) or not wanted or not all(isinstance(name, str) for name in wanted):
        raise ConfigError(f"runs is {runs!r}, expected folders, as in runs='[logs/a,logs/b]' or runs='logs/train/*'")
    found: dict[Path, None] = {}
    for name in wanted:
        pattern = glob.has_magic(name) and not Path(name).exists()
        matches = sorted(glob.glob(name)) if pattern else [name]  # noqa: PTH207 - it may be absolute
        if not matches:
            raise ConfigError(f"runs: nothing matches {name!r}; name folders of runs")
        folders = [Path(match) for match in matches if Path(match).is_dir() or not Path(match).exists()]
        if not folders:
            raise ConfigError(
                f"runs: {name!r} {'matches files only' if pattern else 'is a file'}; name folders of runs"
            )
        found |= dict.fromkeys(folders)
    return list(found)


def read_runs(folders: list[Path], split: str) -> list[Run]:
    """A row for each system in the folders, and one with the reason for each folder that has none.

    Args:
        folders: of runs, of evaluations, of sweeps, or folders of such folders.
        split: whose scores are read from what training wrote.
    """
    found = [pair for folder in folders for pair in _open(folder, split)]
    places = [os.path.abspath(run.folder) for run, _ in found]  # noqa: PTH100 - links keep their names
    shared = os.path.commonpath(places)
    return [_named(run, system, shared) for run, system in found]


def _named(run: Run, system: str, shared: str) -> Run:
    """The run, named after its folder below what all folders share, and its system."""
    place = os.path.relpath(run.folder, shared)
    parts = [Path(shared).name if place == "." and not system else place, system]
    return replace(run, name=": ".join(part for part in parts if part not in ("", ".")))


def _open(folder: Path, split: str) -> Iterator[tuple[Run, str]]:
    """Rows with the names of their systems."""
    try:
        if (report := _json(folder / REPORT)) is not None and "systems" in report:
            yield from _evaluated(folder, report)
        elif (metrics := _json(folder / METRICS)) is not None:
            yield _trained(folder, metrics, split), ""
        elif (trials := _json(folder / _SWEEP)) is not None:
            yield from _swept(folder, trials, split)
        elif inner := [path.parent for path in sorted(folder.glob("*/*")) if path.name in (REPORT, METRICS)]:
            for place in dict.fromkeys(inner):
                yield from _open(place, split)
        else:
            yield _without(folder, _reason(folder)), ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OmegaConfBaseException, YAMLError) as error:
        yield _without(folder, f"its files cannot be read: {type(error).__name__}: {error}".splitlines()[0]), ""


def _json(path: Path) -> Any:
    """What a file says; None where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _evaluated(folder: Path, report: dict[str, Any]) -> Iterator[tuple[Run, str]]:
    rows = []
    for system in report["systems"]:
        scores = {key: float(score["value"]) for key, score in system["scores"].items()}
        signature = str(system["scores"]["bleu"].get("signature", ""))
        run = Run(
            name="",
            folder=str(folder),
            model=str(system["architecture"]),
            bleu=scores["bleu"],
            chrf=scores.get("chrf"),
            ter=scores.get("ter"),
            translating=float(system["tokens_per_second"]),
            parameters=int(system["parameters"]),
            size_bytes=int(system["size_bytes"]),
            test_set=str(report["test_set"]),
            signature=_plain_signature(signature),
        )
        rows.append((run, str(system["name"])))
    yield from rows  # all or none of a file


def _trained(folder: Path, metrics: dict[str, Any], split: str) -> Run:
    if f"{split}/bleu" not in metrics:
        scores = ", ".join(name for name in metrics if name.endswith("/bleu")) or "no BLEU"
        return _without(folder, f"{METRICS} has no {split}/bleu, but {scores}; set split")
    bleu = float(metrics[f"{split}/bleu"])
    if not math.isfinite(bleu):
        return _without(folder, f"{METRICS}: {split}/bleu is {bleu}")
    path = folder / "config.yaml"
    config: Any = OmegaConf.to_container(OmegaConf.load(path)) if path.is_file() else {}
    data = config.get("data", {})
    kind = str(data.get("_target_", "")).rpartition(".")[2]
    named = [kind, *(str(data[key]) for key in ("test_set", "variant", "test") if data.get(key) is not None)]
    parameters = metrics.get("model/parameters")
    return Run(
        name="",
        folder=str(folder),
        model=str(config.get("name", "")),
        bleu=bleu,
        chrf=metrics.get(f"{split}/chrf"),
        ter=metrics.get(f"{split}/ter"),
        training=metrics.get("train/tokens_per_second"),
        parameters=None if parameters is None else int(parameters),
        test_set=" ".join(filter(None, [*named, split if any(named) else ""])),
        signature=_plain_signature(str(metrics.get("signatures", {}).get(f"{split}/bleu", ""))),
    )


def _swept(folder: Path, trials: list[dict[str, Any]], split: str) -> Iterator[tuple[Run, str]]:
    """The trials of ``src/sweep.py``, which it has listed with their folders, states and errors."""
    for trial in trials:
        place = folder / str(trial["folder"] or f"trial {trial['trial']}")
        if trial["state"] == "complete":
            yield from _open(place, split)
        else:
            last = str(trial["error"] or "").strip().splitlines()[-1:]
            yield _without(place, ": ".join([f"trial {trial['state']}", *last])), ""


def _reason(folder: Path) -> str:
    if not folder.is_dir():
        return "there is no such folder"
    if (folder / "metrics.csv").is_file():
        return f"the run has not ended: it has no {METRICS}"
    return f"it has neither {REPORT} nor {METRICS}"


def _without(folder: Path, reason: str) -> Run:
    return Run(name="", folder=str(folder), missing=reason)


def _plain_signature(signature: str) -> str:
    return "|".join(part for part in signature.split("|") if not part.startswith(_RESAMPLING))
