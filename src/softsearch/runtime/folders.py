"""Folders that are written atomically: bundles and sites."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softsearch.errors import BundleError


@contextmanager
def new_folder(folder: Path, kind: str) -> Iterator[Path]:
    """An empty folder to fill, which then takes the place of ``folder``; on any failure an older one stays as it was.

    The new folder is on the disk before two renames replace the old one. After a SIGKILL or a power cut between the two
    renames both folders are whole, as ``old`` and ``new`` in ``.NAME.*`` beside the path.

    Args:
        folder: the path; what is there is replaced.
        kind: what the folder is, for messages: ``bundle``.

    Raises:
        BundleError: the disk is full or not writable.
    """
    with staging(folder, kind) as place:
        fresh = place / "new"
        fresh.mkdir()
        yield fresh
        for path in fresh.rglob("*"):
            sync(path)
        sync(fresh)
        _swap(fresh, folder, place / "old")
        sync(folder.parent)


@contextmanager
def staging(folder: Path, kind: str) -> Iterator[Path]:
    """A temporary folder beside ``folder``, on the same file system; raises as :func:`new_folder`."""
    place: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        yield place
    except OSError as error:
        reason = error.strerror or error
        if isinstance(error, shutil.Error):  # of copies, which names each file
            reason = error.args[0][0][2]
        raise BundleError(
            f"{folder} cannot be written ({reason}); an older {kind} is unchanged, make room or choose another folder"
        ) from error
    finally:
        if place is not None and (folder.exists() or not (place / "old").exists()):  # never the only copy
            shutil.rmtree(place, ignore_errors=True)


def sync(path: Path) -> None:
    """Flushes a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(fresh: Path, folder: Path, old: Path) -> None:
    try:
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    except BaseException:  # a signal's too
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
