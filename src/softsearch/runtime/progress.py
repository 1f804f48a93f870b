"""Progress line for a long translation on a terminal."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import IO


def part_read(source: IO[bytes]) -> Callable[[], float] | None:
    """Returns what tells the part of a file that has been read, from 0 to 1; None for other streams and empty files."""
    if not isinstance(getattr(source, "raw", None), FileIO):
        return None
    status = os.fstat(source.fileno())
    size = status.st_size if S_ISREG(status.st_mode) else 0
    return (lambda: source.tell() / size) if size else None


@contextmanager
def show_progress(part: Callable[[], float] | None, output: Path | None) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of lines done, which updates a line on standard error.

    If ``part`` tells the part of the input that has been read, the line shows it and the time left. The first call
    starts the clock. Nothing is shown if standard error is not a terminal, or if the translations go to the same one.
    """
    shown = sys.stderr is not None and sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())
    if not shown:
        yield lambda _done: None
        return
    printed = False
    begin: tuple[int, float, float] | None = None  # lines, seconds and the part read at the first call

    def show(done: int) -> None:
        nonlocal begin, printed
        now, read = time.monotonic(), part() if part else 0.0
        begin = begin or (done, now, read)
        lines, seconds, new = done - begin[0], now - begin[1], read - begin[2]
        if not lines:
            return
        text = f"{done:,} lines, {lines / seconds:,.0f} lines/s"
        if new:
            left = round(seconds * (1 - read) / new)
            text = f"{read:.0%}, {text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)
        printed = True

    try:
        yield show
    finally:
        if printed:
            print(file=sys.stderr)
