"""Files and folders that are replaced as a whole: what was there stays until the new one is complete."""

import errno
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which then takes the place of ``path``; on any failure ``path`` stays as it was.

    It is on the disk before it is renamed, and keeps the mode of an older file. Until then it is ``.NAME.partial``;
    that of a killed process is overwritten.

    Raises:
        OSError: the disk is full or not writable, or another process writes the same file.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with partial.open("xb") as file:
        mine = os.fstat(file.fileno())
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            if not os.path.samestat(mine, partial.stat()):
                raise OSError(errno.EBUSY, "another process is writing it")
            os.replace(partial, path)
        except BaseException:  # a signal's too
            with suppress(OSError):
                if os.path.samestat(mine, partial.stat()):
                    partial.unlink()
            raise


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which then takes the place of ``folder``; on any failure ``folder`` stays as it was.

    It is on the disk before two renames replace the old one. After a SIGKILL or a power cut between the two renames
    both are whole, in ``.unfinished-*`` beside the path.

    Raises:
        OSError: the disk is full or not writable.
    """
    with new_contents(folder.parent, folder.name) as new:
        (new / folder.name).mkdir()
        yield new / folder.name
        for path in (*new.rglob("*"), new):
            _sync(path)
    _sync(folder.parent)


@contextmanager
def new_contents(folder: Path, name: str) -> Iterator[Path]:
    """An empty folder to fill; what is in it then moves to ``folder`` and replaces what has the same names.

    An error while files are written or moved leaves ``folder`` as it was. SIGKILL or a power cut while they are moved
    leaves some files new, and the others, all whole, old or in ``.unfinished-HOST-NAME-*``.

    Raises:
        OSError: the disk is full or not writable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=unfinished(name), dir=folder))
    new, old, is_moved = place / "new", place / "old", False
    try:
        new.mkdir()
        old.mkdir()
        yield new
        _move(new, folder, old)
        is_moved = True  # what is missing from now on, another process is just replacing
    finally:
        if is_moved or all((folder / path.name).exists() for path in old.glob("*")):  # never the only copy
            shutil.rmtree(place, ignore_errors=True)


def unfinished(name: str) -> str:
    """Returns how the names of this host's unfinished folders begin."""
    return f".unfinished-{platform.node()}-{name}-"


def _move(new: Path, folder: Path, old: Path) -> None:
    """Moves what is in ``new`` to ``folder``, and files of the same names there to ``old``; on errors, back again."""
    names = sorted(path.name for path in new.iterdir())
    try:
        for name in names:
            with suppress(FileNotFoundError):  # no such file, or another process has just moved it
                (folder / name).rename(old / name)
            (new / name).rename(folder / name)
    except BaseException:
        for name in names:
            if not (new / name).exists():
                (folder / name).rename(new / name)
            if (old / name).exists():
                (old / name).rename(folder / name)
        raise


def _sync(path: Path) -> None:
    """Flushes a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
