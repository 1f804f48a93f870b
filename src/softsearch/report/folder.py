"""A report's folder: everything is written, or nothing is."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.report.contents import Report

REPORT = "report.json"


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder; what is in it at the end is moved to ``folder``, over what has the same names there.

    Raises:
        ConfigError: the disk is full or the place is not writable; nothing was changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            yield Path(unfinished)
            for path in sorted(Path(unfinished).iterdir()):
                place = folder / path.name
                if place.is_dir():
                    shutil.rmtree(place)
                path.replace(place)
    except OSError as error:
        raise ConfigError(
            f"cannot write the report to {folder} ({error.strerror}); make room there, or set hydra.run.dir=FOLDER"
        ) from error


def write_report(report: Report, folder: Path) -> Path:
    """Writes ``report.json``."""
    path = folder / REPORT
    text = json.dumps(asdict(report), ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def file_name(system: str) -> str:
    """A system's name as part of a file's."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"
