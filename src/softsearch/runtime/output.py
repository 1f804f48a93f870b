"""Output of results to a file (written atomically), a device or standard output."""

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from softsearch.errors import InputError
from softsearch.files import new_file
from softsearch.text.corpus import packing_stream

_PACKERS: Mapping[str, Callable[[IO[bytes]], Any]] = {  # by the suffix of the file
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".zst": packing_stream,
}


class Output:
    """A stream of bytes whose errors name it."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name

    def write(self, data: bytes) -> None:
        """Writes bytes.

        Raises:
            InputError: the file system refuses them.
            BrokenPipeError: the reader has closed the pipe.
        """
        with file_name_in_errors(self._name):
            self._stream.write(data)

    def flush(self) -> None:
        """Flushes the stream; raises as ``write`` does."""
        with file_name_in_errors(self._name):
            self._stream.flush()

    def sync(self) -> None:
        """Flushes a file to the disk; raises as ``write`` does."""
        self.flush()
        with file_name_in_errors(self._name):
            os.fsync(self._stream.fileno())


@contextmanager
def file_name_in_errors(name: str) -> Iterator[None]:
    """Turns operating-system errors into errors that name the file.

    Raises:
        InputError: the operating system reported an error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(
            f"{name} cannot be written ({error.strerror}); free space or choose another file or folder"
        ) from error


@contextmanager
def open_output(path: Path | None) -> Iterator[Output]:
    """Opens a file for writing that appears under its name only when it is complete.

    One whose name ends in .gz, .xz, .bz2 or .zst is compressed. A file that is replaced keeps its mode, and a symbolic
    link to it stays. Pipes and devices are written directly; None is standard output.

    Raises:
        InputError: it cannot be written.
    """
    if path is None:
        if sys.stdout is None:
            raise InputError("standard output is closed; open it for the results, or give --output FILE")
        output = Output(sys.stdout.buffer, "standard output")
        yield output
        output.flush()
    elif path.exists() and not path.is_file():
        with file_name_in_errors(str(path)):
            stream = path.open("wb", buffering=0)  # unbuffered, so closing writes nothing
        with stream:
            yield Output(stream, str(path))
    else:
        with ExitStack() as stack:
            with file_name_in_errors(str(path)):
                if path.exists():
                    path.open("ab").close()  # a file without write permission must not be replaced either
                real = Path(os.path.realpath(path))  # resolve() raises for circular links
                file = stack.enter_context(new_file(real))
                packer = _PACKERS.get(path.suffix.lower())
                packed = stack.enter_context(packer(file)) if packer else file
            yield Output(packed, str(path))
            with file_name_in_errors(str(path)):
                stack.close()


def refuse_packed(path: Path) -> None:
    """Refuses the name of a compressed file, which cannot be continued.

    Raises:
        InputError: it is one.
    """
    if path.suffix.lower() in _PACKERS:
        raise InputError(
            f"{path} would be compressed, and --resume continues plain files; write {path.stem}, then compress it"
        )


@contextmanager
def append_output(path: Path) -> Iterator[Output]:
    """Opens a file for appending, and locks out other processes.

    Raises:
        InputError: it cannot be written, or another process is writing it.
    """
    with file_name_in_errors(str(path)):
        stream = path.open("ab")
    with stream:
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"another process is writing {path}; wait for it, or choose another file") from error
        except (ModuleNotFoundError, OSError):  # Windows, or a file system without locks
            pass
        output = Output(stream, str(path))
        yield output
        output.flush()
