"""Report folder: written completely or not at all."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.files import new_contents


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder; its contents are moved to ``folder`` at the end and replace files of the same names.

    An error leaves ``folder`` as it was, see :func:`softsearch.files.new_contents`.

    Raises:
        ConfigError: the disk is full or the folder is not writable; nothing was changed.
    """
    try:
        with new_contents(folder, "report") as new:
            yield new
    except OSError as error:
        raise ConfigError(
            f"cannot write the report to {folder} ({error.strerror}); make room there, or set hydra.run.dir=FOLDER"
        ) from error


def file_name(system: str) -> str:
    """A system's name as part of a file name."""
    return re.sub(r"[^\w.+-]+", "-", system).strip("-.") or "system"
