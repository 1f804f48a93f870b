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


@contextmanager
def show_progress(source: IO[bytes] | None, output: Path | None) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of lines done, which updates a line on standard error.

    If the input is a file, the line shows the share read and the time left. The first call starts the clock.
    Nothing is shown if standard error is not a terminal, or if the translations go to the same one.
    """
    shown = sys.stderr is not None and sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())
    if not shown:
        yield lambda _done: None
        return
    size = 0
    if (
        source is not None
        and isinstance(getattr(source, "raw", None), FileIO)
        and S_ISREG((status := os.fstat(source.fileno())).st_mode)
    ):
        size = status.st_size
    printed = False
    begin: tuple[int, float, int] | None = None  # lines, seconds and bytes at the first call

    def show(done: int) -> None:
        nonlocal begin, printed
        now, read = time.monotonic(), source.tell() if source is not None and size else 0
        begin = begin or (done, now, read)
        lines, seconds, new = done - begin[0], now - begin[1], read - begin[2]
        if not lines:
            return
        text = f"{done:,} lines, {lines / seconds:,.0f} lines/s"
        if new:
            left = round(seconds * (size - read) / new)
            text = f"{read / size:.0%}, {text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)
        printed = True

    try:
        yield show
    finally:
        if printed:
            print(file=sys.stderr)
