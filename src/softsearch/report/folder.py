"""A report's folder: written whole, file by file complete."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from softsearch.errors import ConfigError


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


def file_name(system: str) -> str:
    """A system's name as part of a file's."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"
