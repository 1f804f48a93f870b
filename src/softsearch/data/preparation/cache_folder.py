"""Cache folders, made by one process while others wait, either complete or absent, and checked when opened."""

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from softsearch.errors import ConfigError, CorpusError
from softsearch.files import new_contents, open_file, unfinished
from softsearch.text.plain_values import read_json

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

INDEX = "files.json"
PARTS = "parts"  # folder in the cache, of parts of prepared data
_DESCRIPTION = re.compile(r"\d+ bytes, sha256 [0-9a-f]{16}")  # of a file, in the index
ABANDONED_AFTER = 86_400.0  # seconds without changes until another host's unfinished folder counts as abandoned
_MAX_HASHED_BYTES = 64 << 20  # files up to this many bytes are hashed completely
_BLOCK, _BLOCKS = 64 << 10, 64  # for larger files: bytes per block, and number of blocks hashed
log = logging.getLogger(__name__)


def made_folder(cache_dir: Path, kind: str, identity: str, write: Callable[[Path], None]) -> Path:
    """Returns the folder ``KIND-HASH`` in ``cache_dir``, made by ``make_folder``, whose errors it raises.

    The hash is that of ``identity``, which names everything that determines the content.
    """
    folder = named_folder(cache_dir, kind, identity)
    make_folder(folder, write)
    return folder


def named_folder(cache_dir: Path, kind: str, identity: str) -> Path:
    """Returns the path of the folder that ``made_folder`` makes."""
    return cache_dir / f"{kind}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def make_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Makes ``folder`` with ``write`` unless it exists undamaged; a damaged one is rebuilt, with a warning.

    Its name must identify its content. One of several processes makes it while the others wait. On a file system
    without locks all of them make it, and the first to finish wins. All its files get the same time of modification, by
    which ``damage`` knows them.

    Raises:
        CorpusError: the disk is full or the folder is not writable.
    """
    if damage(folder) is None:
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder) as locked:
            problem = damage(folder)
            if problem is None:  # made by another process in the meantime
                return
            if folder.exists():
                log.warning("%s is damaged and will be rebuilt: %s", folder, problem)
            _remove_leftovers(folder.parent, unfinished(folder.name) if locked else None)
            with new_contents(folder.parent, folder.name) as place:
                new = place / folder.name
                new.mkdir()
                write(new)
                (new / INDEX).write_text(json.dumps(_describe_files(new), indent=1), encoding="utf-8")
                _seal(new)
                if damage(folder) is None:  # made by another process in the meantime, which may be reading it
                    shutil.rmtree(new)
    except OSError as error:
        if damage(folder) is None:
            return
        raise CorpusError(
            f"cannot write {folder} ({error.strerror or error}); free space there or choose another cache folder "
            "(cache_dir=FOLDER)"
        ) from error


def damage(folder: Path) -> str | None:
    """Describes the damage to a folder made by ``make_folder``; None if it is intact.

    Detects missing, extra and resized files. As long as all files have the time that they were given, only the index is
    read. Else some have changed, or they were copied without times: it detects every change in files of up to 64 MiB,
    and reads 64 blocks of 64 KiB of larger ones, at equal distances, including the first and the last bytes. If nothing
    has changed, they get a new time. Hidden files, which file systems and file browsers leave behind, are ignored.
    """
    try:
        expected = read_json(folder / INDEX)
        if isinstance(expected, dict) and _is_sealed(folder, expected):
            return None
        actual = _describe_files(folder)
    except FileNotFoundError:
        return f"it has no {INDEX}"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    except ValueError:
        expected = None
    if not isinstance(expected, dict):
        return f"{INDEX} cannot be read"
    different = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
    if not different:
        with suppress(OSError):  # of others' files
            _seal(folder)
        return None
    name, *more = different
    sizes = f"found {actual.get(name, 'no such file')}, expected {expected.get(name, 'no such file')}"
    return f"{name}: {sizes}" + (f"; and {len(more)} more files" if more else "")


def is_made(folder: Path) -> bool:
    """Tells whether ``make_folder`` made a folder, by the form of its index, whose name others may use."""
    try:
        index = read_json(folder / INDEX)
    except (OSError, ValueError):
        return False
    values = index.values() if isinstance(index, dict) else ()
    return bool(values) and all(isinstance(value, str) and _DESCRIPTION.fullmatch(value) for value in values)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _describe_files(folder: Path) -> dict[str, str]:
    """Returns the sizes and digests of the files by name."""
    return {path.name: _describe(path) for path in _files(folder) if path.name != INDEX}


def _seal(folder: Path) -> None:
    """Gives all files of an intact folder one time, a second that has passed, so that every later change shows.

    It is a whole second, because archives and some file systems keep no others.
    """
    passed = int(time.time()) - 2
    for path in _files(folder):
        os.utime(path, (passed, passed))


def _is_sealed(folder: Path, expected: dict[str, object]) -> bool:
    """Tells whether all files have the time that ``_seal`` gave them, and the sizes in the index."""
    states = {path.name: path.stat() for path in _files(folder)}
    (time_ns, *others), _ = {state.st_mtime_ns for state in states.values()}, states.pop(INDEX)
    sizes = {name: f"{state.st_size} bytes" for name, state in states.items()}
    return not others and not time_ns % 10**9 and sizes == {k: str(v).partition(",")[0] for k, v in expected.items()}


def _describe(path: Path) -> str:
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _MAX_HASHED_BYTES:
            digest = hashlib.file_digest(file, "sha256")
        else:
            digest = hashlib.sha256()
            for begin in np.linspace(0, size - _BLOCK, _BLOCKS, dtype=np.int64).tolist():
                file.seek(begin)
                digest.update(file.read(_BLOCK))
    return f"{size} bytes, sha256 {digest.hexdigest()[:16]}"


@contextmanager
def lock(path: Path, *, busy: Callable[[], object], missing: Callable[[OSError], object]) -> Iterator[bool]:
    """Holds a lock on the file ``path``; yields False if the system has no locks.

    The kernel holds it, so it ends with the process in any case; the file stays. Forked processes, such as a data
    loader's workers, give up their share immediately, because they may live longer. ``busy`` is called before waiting
    for another process, and ``missing`` if the file system has no locks.

    Raises:
        ConfigError: the path is not a regular file, so opening it could block.
    """
    if fcntl is None:
        yield False
        return
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is not a file, expected the lock of a folder; remove it")
    locked = True
    with path.open("ab") as file:  # network file systems need it open for writing
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            locked = False
            missing(error)
        _locked.add(file)
        try:
            yield locked
        finally:
            _locked.discard(file)


def _leave_locks_to_parent() -> None:
    for file in _locked:
        file.close()
    _locked.clear()


_locked: set[IO[bytes]] = set()  # open lock files held by this process
if fcntl is not None:
    os.register_at_fork(after_in_child=_leave_locks_to_parent)


def _lock(folder: Path) -> AbstractContextManager[bool]:
    """Waits until no other process is making ``folder``."""
    advice = "run softsearch prepare before processes that start together"
    return lock(
        folder.with_name(f".{folder.name}.lock"),
        busy=lambda: log.info("waiting for another process that is making %s", folder),
        missing=lambda error: log.warning(
            f"%s: its file system has no locks (%s), so each process makes its own copy of this folder; {advice}",
            folder,
            error.strerror,
        ),
    )


def _remove_leftovers(parent: Path, own: str | None) -> None:
    """Removes the unfinished folders of killed processes: those with the prefix ``own``, and old ones.

    On this host only the holder of the lock can be writing.
    """
    for path in parent.glob(".unfinished-*"):
        if (own and path.name.startswith(own)) or time.time() - _last_change(path) > ABANDONED_AFTER:
            log.info("removing %s, left by a killed process", path)
            shutil.rmtree(path, ignore_errors=True)


def _last_change(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:  # its owner is writing
        return time.time()
