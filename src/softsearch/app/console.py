"""Console output of commands: text, tables, a progress bar and the log.

The text may come from other people's files, so it is made printable (``softsearch.errors.printable``).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from softsearch.errors import printable


class _Printable(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        """A console that makes all text printable, also in tables."""
        return super().render_str(printable(text, keep="\n\t"), **options)


class PrintableFormatter(logging.Formatter):
    """Formats log records as printable text; named in configs/hydra/job_logging."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns a record as printable text."""
        return printable(super().format(record), keep="\n\t")


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Returns a console without markup or emojis: a folder may be named ``[red]`` or ``:ok:``."""
    return _Printable(stderr=stderr, width=width, markup=False, emoji=False)


def echo(text: str) -> None:
    """Prints lines to standard output without breaking or colouring them."""
    plain_console().print(text, soft_wrap=True, highlight=False)


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, *, numbers: int = 0
) -> None:
    """Prints a table whose last columns are ``numbers``, which are never folded; in a file, nothing is folded."""
    table = Table(title=title)
    for index, name in enumerate(columns, 1 - len(columns)):
        if -index < numbers:
            table.add_column(name, justify="right", min_width=max(map(len, name.split())))
        else:
            table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = plain_console()
    (console if console.is_terminal else plain_console(width=1000)).print(table)


@contextmanager
def progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on a terminal, or the elapsed time if ``total`` is None; yields a function to advance it."""
    console = plain_console(stderr=True)
    columns = Progress.get_default_columns() if total is not None else ("{task.description}", TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(printable(name)), total=total)
        yield lambda done: bar.advance(task, done)
