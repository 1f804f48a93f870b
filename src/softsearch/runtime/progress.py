"""Progress of a long translation, on a terminal."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import IO


@contextmanager
def show_progress(source: IO[bytes], output: Path | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that is called with the number of lines done, and keeps a line on standard error up to date.

    It shows the share of the input that was read and the time left, if the input is a file. Nothing is shown where
    standard error is no terminal, or where translations appear on it.
    """
    shown = sys.stderr is not None and sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())
    if not shown:
        yield lambda _done: None
        return
    status = os.fstat(source.fileno())
    size = status.st_size if S_ISREG(status.st_mode) else 0
    start, first = time.monotonic(), source.tell() if size else 0

    def show(done: int) -> None:
        seconds = max(time.monotonic() - start, 1e-3)
        text = f"{done:,} lines, {done / seconds:,.0f} lines/s"
        if size and (read := source.tell() - first):
            left = round(seconds * (size - first - read) / read)
            text = f"{read / (size - first):.0%}, {text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(file=sys.stderr)
