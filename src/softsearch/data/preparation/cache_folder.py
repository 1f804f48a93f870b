"""Folders in the cache: made by one process while others wait for it, whole or absent, and checked when opened."""

import fcntl
import hashlib
import json
import logging
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from softsearch.errors import CorpusError

INDEX = "files.json"
OLD = 86_400.0  # seconds without a change after which an unfinished folder of another host is nobody's
_WHOLE = 64 << 20  # bytes up to which a file is hashed as a whole
_BLOCK, _BLOCKS = 64 << 10, 64  # of a larger file: bytes of a block, and how many blocks are hashed
log = logging.getLogger(__name__)


def make_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Makes ``folder`` with ``write`` unless it is there and undamaged; a damaged one is made again, with a warning.

    Of several processes that want it one makes it and the others wait. Where the file system has no locks each of them
    makes it, and the first to finish wins.

    Args:
        folder: the place; what it will hold depends on its name alone.
        write: fills the empty folder that it is given.

    Raises:
        CorpusError: the disk is full or the place is not writable.
    """
    if damage(folder) is None:
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _turn(folder) as alone:
            wrong = damage(folder)  # not the same as before if another process has made it meanwhile
            if wrong is None:
                return
            if folder.exists():
                log.warning("%s is damaged and is made again: %s", folder, wrong)
            unfinished = f".unfinished-{platform.node()}-{folder.name}-"
            _remove_leftovers(folder.parent, unfinished if alone else None)
            with tempfile.TemporaryDirectory(prefix=unfinished, dir=folder.parent) as scratch:
                new = Path(scratch, "new")
                new.mkdir()
                write(new)
                (new / INDEX).write_text(_index(new), encoding="utf-8")
                _publish(new, folder, Path(scratch, "old"))
    except OSError as error:
        raise CorpusError(
            f"cannot write {folder} ({error.strerror or error}); make room there or choose another cache folder "
            "(cache_dir=FOLDER)"
        ) from error


def damage(folder: Path) -> str | None:
    """What is wrong with a folder that :func:`make_folder` has made; None if nothing is.

    Missing, additional and resized files are found, and every change in files of up to 64 MiB. Of larger files 64
    blocks of 64 KiB at equal distances are read, the first and the last bytes among them. Hidden files, which file
    systems and file browsers leave behind, do not count.
    """
    try:
        written = (folder / INDEX).read_text(encoding="utf-8")
        found = _index(folder)
        if found == written:
            return None
        expected = json.loads(written)
    except FileNotFoundError:
        return f"it has no {INDEX}"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    except ValueError:
        expected = None
    if not isinstance(expected, dict):
        return f"{INDEX} cannot be read"
    here = json.loads(found)
    wrong = [
        f"{name}: found {here.get(name, 'no such file')}, expected {expected.get(name, 'no such file')}"
        for name in sorted({*here, *expected})
        if here.get(name) != expected.get(name)
    ]
    more = [f"and {len(wrong) - 3} more"] if len(wrong) > 3 else []
    return "; ".join([*wrong[:3], *more]) or f"{INDEX} was changed"


def _index(folder: Path) -> str:
    """The sizes and digests of the files, as they stand in the folder's index."""
    files = sorted(path for path in folder.iterdir() if path.name != INDEX and not path.name.startswith("."))
    return json.dumps({path.name: _describe(path) for path in files}, indent=1)


def _describe(path: Path) -> str:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _WHOLE:
            digest = hashlib.file_digest(file, "sha256")
        else:
            digest = hashlib.sha256()
            for begin in np.linspace(0, size - _BLOCK, _BLOCKS, dtype=np.int64).tolist():
                file.seek(begin)
                digest.update(file.read(_BLOCK))
    return f"{size} bytes, sha256 {digest.hexdigest()[:16]}"


@contextmanager
def _turn(folder: Path) -> Iterator[bool]:
    """Waits until no other process makes ``folder``; yields False where the file system cannot tell.

    The kernel holds the lock, so it ends with the process, however that ends. The lock's file is removed by its holder:
    who has waited for a file that is gone tries again with the one that is there.
    """
    path = folder.with_name(f".{folder.name}.lock")
    while True:
        with path.open("ab") as file:  # network file systems lock for writing what is open for writing
            alone = _lock(file.fileno(), folder)
            if not _is_at(path, file.fileno()):
                continue
            try:
                yield alone
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.info("waiting for another process, which makes %s", folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        log.warning(
            "%s: its file system has no locks (%s), so each process makes this folder for itself; "
            "run src/prepare.py before processes that start together",
            folder,
            error.strerror,
        )
        return False
    return True


def _remove_leftovers(parent: Path, own: str | None) -> None:
    """Removes what killed processes have begun.

    Args:
        parent: of the unfinished folders.
        own: how the names of this folder's begin that were made on this host, where none but the holder of the lock
            can be at work; of the others those are removed that are old.
    """
    for path in parent.glob(".unfinished-*"):
        if (own and path.name.startswith(own)) or time.time() - _last_change(path) > OLD:
            log.info("removing %s, which was left by a process that is gone", path)
            shutil.rmtree(path, ignore_errors=True)


def _last_change(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:  # its owner is at work
        return time.time()


def _publish(new: Path, folder: Path, old: Path) -> None:
    """Renames the finished folder to its name; if another process was faster, its equal copy stays."""
    if damage(folder) is None:
        return
    try:
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except OSError:
        if damage(folder) is not None:
            raise
