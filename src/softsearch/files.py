"""Files that are read only if they are regular; files and folders that are replaced as a whole, once complete."""

import errno
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

MANIFEST = "manifest.json"  # the file that makes a folder a bundle
METRICS = "metrics.json"  # of a run that has ended
REPORT = "report.json"  # of an evaluation
CURVES = "curves.png"  # of a run, and of several that are compared
_SYSTEM = ("/proc", "/sys")  # files with the environment and other secrets of this machine


def open_file(path: Path) -> BufferedReader:
    """Opens a file to read it.

    A file that others wrote may be a link, or something else under the expected name: a pipe that nobody writes, a
    device without end, a file of the system.

    Raises:
        OSError: it cannot be read, or it is not a regular file.
    """
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # a null character, or half of a surrogate pair
        raise OSError(errno.EINVAL, "its name cannot be that of a file", str(path)) from error
    if not stat.S_ISDIR(mode) and (not stat.S_ISREG(mode) or any(map(path.resolve().is_relative_to, _SYSTEM))):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.open("rb")


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
    file = partial.open("xb")
    mine = os.fstat(file.fileno())
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not os.path.samestat(mine, partial.stat()):
                raise OSError(errno.EBUSY, "another process is writing it")
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(partial, path)  # closed, because Windows renames no file that is open
    except BaseException:  # a signal's too
        with suppress(OSError):
            if os.path.samestat(mine, partial.stat()):
                partial.unlink()
        raise


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which then takes the place of ``folder``; on any failure ``folder`` stays as it was.

    It is on the disk before two renames replace the old one. After a SIGKILL or a power cut between the two renames
    both are whole, in ``.unfinished-*`` next to the path.

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
    """Flushes a file or a folder to the disk; Windows flushes only files that are open for writing."""
    try:
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except PermissionError:  # a folder of Windows, or a file that only others can write
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
