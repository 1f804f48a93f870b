"""Report folder: written completely or not at all."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from softsearch.errors import ConfigError


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder; its contents are moved to ``folder`` at the end and replace files of the same names.

    An error while files are written or moved leaves ``folder`` as it was. SIGKILL or a power cut while they are moved
    leaves some files new, and the others, all whole, old or in ``.unfinished-*``.

    Raises:
        ConfigError: the disk is full or the folder is not writable; nothing was changed.
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
    """Moves what is in ``new`` to ``folder``, and files of the same names there to ``old``; on errors, back again."""
    names = sorted(path.name for path in new.iterdir())
    try:
        for name in names:
            with suppress(FileNotFoundError):  # no such file, or another process has just moved it
                (folder / name).rename(old / name)
            (new / name).rename(folder / name)
    except BaseException:  # also of a signal
        for name in names:
            if not (new / name).exists():
                (folder / name).rename(new / name)
            if (old / name).exists():
                (old / name).rename(folder / name)
        raise


def file_name(system: str) -> str:
    """A system's name as part of a file name."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"
