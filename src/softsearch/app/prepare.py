"""Preparing the data of a run beforehand, in all cores, with a report of what was found in it."""

import os
import sys
from pathlib import Path

from omegaconf import DictConfig
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from softsearch.app.config.instantiate import build
from softsearch.app.config.validation import check, plain
from softsearch.app.console import plain_console
from softsearch.data.preparation.prepare import prepare as prepare_data
from softsearch.data.preparation.prepared import PreparedData
from softsearch.text.option_checks import require_int


def prepare(config: DictConfig) -> None:
    """Prepares ``data`` with ``tokenizer``, and prints what was found and dropped.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read or written.
    """
    resolved = plain(config)
    for name in ("data", "tokenizer"):
        check(resolved[name], name)
    processes = os.cpu_count() or 1 if resolved["processes"] is None else resolved["processes"]
    require_int("processes", processes, at_least=1)
    cache_dir = Path(config.cache_dir)
    if sys.stderr.isatty():
        with _Bars() as bars:
            prepared = prepare_data(
                build(config.data), build(config.tokenizer), cache_dir, processes=processes, progress=bars
            )
    else:
        prepared = prepare_data(build(config.data), build(config.tokenizer), cache_dir, processes=processes)
    _show(prepared)


class _Bars:
    """Shows how far preparing is, on a terminal."""

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
    table = Table("split", "source | target", "pairs", "kept", "found")
    for split, corpora in report["corpora"].items():
        for corpus in corpora:
            found = "\n".join(f"{count:,} {what}" for what, count in corpus["findings"].items())
            files = f"{Path(corpus['src']).name} | {Path(corpus['tgt']).name}"
            table.add_row(split, files, f"{corpus['lines']:,}", f"{corpus['kept']:,}", found)
    console.print(table)
    for split, count in report["also_in_training"].items():
        console.print(f"{count:,} pairs of {split} are in the training data too")
    for split, (src, tgt) in report["tokens"].items():
        console.print(f"{split}: {src:,} source tokens, {tgt:,} target tokens")
    console.print(f"prepared: {prepared.folder}", soft_wrap=True, highlight=False)
