"""Preparation of a run's data beforehand, on all cores, with a report of what they contain."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from softsearch.app.config.instantiate import build
from softsearch.app.config.options import Prepare
from softsearch.app.console import plain_console
from softsearch.data.preparation.prepare import prepare as prepare_data
from softsearch.data.preparation.prepared import PreparedData


def prepare(options: Prepare) -> None:
    """Prepares ``data`` with ``tokenizer``, and prints what was found and dropped.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read or written.
    """
    source, tokenizer = build(options.data), build(options.tokenizer)
    processes = options.processes or os.cpu_count() or 1
    with _Bars() if sys.stderr.isatty() else nullcontext() as bars:
        prepared = prepare_data(source, tokenizer, options.cache_dir, processes=processes, progress=bars)
    _show(prepared)


class _Bars:
    """Progress bars on a terminal."""

    def __init__(self) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self._progress = Progress(*columns, console=plain_console(stderr=True))
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "_Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)


def _show(prepared: PreparedData) -> None:
    console = plain_console()
    report = prepared.report()
    table = Table("split", "source | target", "pairs", "kept", "findings")
    for split, corpora in report["corpora"].items():
        for corpus in corpora:
            findings = "\n".join(f"{count:,} {what}" for what, count in corpus["findings"].items())
            files = f"{Path(corpus['src']).name} | {Path(corpus['tgt']).name}"
            table.add_row(split, files, f"{corpus['lines']:,}", f"{corpus['kept']:,}", findings)
    console.print(table)
    for split, count in report["also_in_training"].items():
        console.print(f"{count:,} pairs of {split} are in the training data too")
    for split, (src, tgt) in report["tokens"].items():
        console.print(f"{split}: {src:,} source tokens, {tgt:,} target tokens")
    console.print(f"prepared: {prepared.folder}", soft_wrap=True, highlight=False)
