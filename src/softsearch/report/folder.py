"""A report's folder: written whole, file by file complete, and read again, to compare with."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import Comparison, LengthRange, Picture, Report, Score, SearchPoint, SystemReport

REPORT = "report.json"


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder; what is in it at the end is moved to ``folder``, over what has the same names there.

    What fails before all is written, or while it is moved, leaves what was there. Whoever kills the process (SIGKILL, a
    power cut) in the instants of moving finds some files new and the others, all whole, old or in ``.unfinished-*``.

    Raises:
        ConfigError: the disk is full or the place is not writable; nothing was changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            new, old = Path(unfinished) / "new", Path(unfinished) / "old"
            new.mkdir()
            old.mkdir()
            yield new
            _move(new, folder, old)
    except OSError as error:
        raise ConfigError(
            f"cannot write the report to {folder} ({error.strerror}); make room there, or set hydra.run.dir=FOLDER"
        ) from error


def _move(new: Path, folder: Path, old: Path) -> None:
    """Moves all that is in ``new`` to ``folder``, and what has the same names there to ``old``; back, if that fails."""
    names = sorted(path.name for path in new.iterdir())
    try:
        for name in names:
            with suppress(FileNotFoundError):  # nothing of that name there, or another process has just moved it
                (folder / name).rename(old / name)
            (new / name).rename(folder / name)
    except BaseException:  # a signal's too
        for name in names:
            if not (new / name).exists():
                (folder / name).rename(new / name)
            if (old / name).exists():
                (old / name).rename(folder / name)
        raise


def write_report(report: Report, folder: Path) -> Path:
    """Writes ``report.json``."""
    path = folder / REPORT
    text = json.dumps(asdict(report), ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def read_report(place: Path) -> Report:
    """Reads ``report.json``, named by its path or its folder's.

    Raises:
        ConfigError: it is missing or something else.
    """
    path = place if place.suffix == ".json" else place / REPORT
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        systems = [_system(system) for system in values["systems"]]
        if not systems or {len(system.hypotheses) for system in systems} != {len(values["references"])}:
            raise ValueError("its systems have not as many translations as there are references")
        comparisons = [Comparison(**comparison) for comparison in values["comparisons"]]
        return Report(**values | {"systems": systems, "comparisons": comparisons})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} cannot be read ({type(error).__name__}: {error}); name the folder of a report of "
            "src/evaluate.py, or write it again"
        ) from error


def _system(values: Mapping[str, Any]) -> SystemReport:
    parts = {
        "scores": {name: Score(**score) for name, score in values["scores"].items()},
        "by_length": [LengthRange(**{**part, "bleu": Score(**part["bleu"])}) for part in values["by_length"]],
        "search_curve": [SearchPoint(**point) for point in values["search_curve"]],
        "heatmaps": [Picture(**picture) for picture in values["heatmaps"]],
    }
    return SystemReport(**{**values, **parts})


def file_name(system: str) -> str:
    """A system's name as part of a file's."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"
