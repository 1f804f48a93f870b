"""``prepare``: prepares the data of a run in advance on all cores, and reports their contents."""

import os
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from softsearch.app.config.options import Prepare
from softsearch.app.config.validation import build
from softsearch.app.console import echo, plain_console, print_rows
from softsearch.app.train.init import tokenizer_maker
from softsearch.data.preparation.prepare import prepare as prepare_data
from softsearch.data.preparation.prepare import text_problems
from softsearch.data.preparation.prepared import PreparedData
from softsearch.data.preparation.processes import OrderedMap, ordered_map


def prepare(options: Prepare, mapping: OrderedMap = ordered_map) -> None:
    """Prepares ``data`` with ``tokenizer``, and prints what was found and dropped.

    Args:
        options: those of the command.
        mapping: where the text is cleaned and encoded, by default in processes of this host.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read or written.
    """
    source, tokenizer, noise = build(options.data), tokenizer_maker(options), build(options.noise)
    processes = options.processes or os.cpu_count() or 1
    console = plain_console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        progress = draw if console.is_terminal else None  # None: log the progress
        prepared = prepare_data(
            source, tokenizer, options.cache_dir, processes=processes, progress=progress, noise=noise, mapping=mapping
        )
    _show(prepared)
    for problem in text_problems(source, prepared.tgt_tokenizer, options.cache_dir):
        echo(f"warning: {problem}")


def _show(prepared: PreparedData) -> None:
    report = prepared.report()
    rows = []
    for split, corpora in report["corpora"].items():
        for corpus in corpora:
            findings = "\n".join(f"{count:,} {what}" for what, count in corpus["findings"].items())
            files = f"{Path(corpus['src']).name} | {Path(corpus['tgt']).name}"
            rows.append((split, files, f"{corpus['lines']:,}", f"{corpus['kept']:,}", findings))
    print_rows(("split", "source | target", "pairs", "kept", "findings"), rows)
    for split, count in report["also_in_training"].items():
        echo(f"{count:,} pairs of {split} are also in the training data")
    for split, (src, tgt) in report["tokens"].items():
        echo(f"{split}: {src:,} source tokens, {tgt:,} target tokens")
    echo(f"prepared: {prepared.folder}")
