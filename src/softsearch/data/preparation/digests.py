"""Digests of text files, which are read again only after a change: the cache remembers each with size and time."""

import hashlib
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from softsearch.errors import CorpusError
from softsearch.files import new_file, open_file

_FOLDER = "digests"  # in the cache
_SAME_TIME = 2_000_000_000  # ns: within it, a file system may give two versions of a file the same time


def digest_of(path: Path, cache_dir: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits.

    It is remembered in ``cache_dir`` for the file's path, size and time of modification. A file that was written less
    than two seconds ago is read at each call, because a later version might have the same time.

    Raises:
        CorpusError: the file cannot be read.
    """
    try:
        with open_file(path) as file:
            begun, stat = time.time_ns(), path.stat()
            name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
            memory, state = cache_dir / _FOLDER / name[:32], f"{stat.st_size} {stat.st_mtime_ns} "
            if (known := _read(memory)).startswith(state):
                return known.removeprefix(state)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
    if begun - stat.st_mtime_ns > _SAME_TIME:
        with suppress(OSError):  # then it is read again the next time
            memory.parent.mkdir(parents=True, exist_ok=True)
            with new_file(memory) as new:
                new.write(f"{state}{digest}".encode())
    return digest


def digests_of(paths: Iterable[Path], cache_dir: Path) -> list[str]:
    """Returns the SHA-256 of several files, as ``digest_of``."""
    return [digest_of(path, cache_dir) for path in paths]


def _read(memory: Path) -> str:
    """Returns what is remembered; nothing if that is not whole."""
    try:
        known = memory.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
    digest = known.rpartition(" ")[2]
    return known if len(digest) == 64 and set(digest) <= set("0123456789abcdef") else ""
