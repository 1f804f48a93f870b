"""``prepare``: prepares the data of a run in advance on all cores or hosts, and reports their contents."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from softsearch.app.config.options import Prepare
from softsearch.app.config.validation import build
from softsearch.app.console import echo, plain_console, print_rows
from softsearch.app.train.init import tokenizer_maker
from softsearch.data.preparation.inputs import Inputs
from softsearch.data.preparation.inputs import Progress as ShowProgress
from softsearch.data.preparation.prepare import prepare as prepare_data
from softsearch.data.preparation.prepare import text_problems
from softsearch.data.preparation.prepared import PreparedData
from softsearch.data.preparation.steps import LogProgress, ShareMade, make_share
from softsearch.data.preparation.store_writing import write_store
from softsearch.data.preparation.text_parts import Share
from softsearch.errors import ConfigError

_SHARE = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)


def prepare(options: Prepare) -> None:
    """Prepares ``data`` with ``tokenizer``, and prints what was found and dropped; with ``part`` a share of it.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read or written.
    """
    share = None if options.part is None else _share(options.part)
    if share is not None and options.store is not None:
        raise ConfigError("part and store are both set; make the parts first, then write the store without part=")
    source, tokenizer, noise = build(options.data), tokenizer_maker(options), build(options.noise)
    processes, cache_dir = options.processes or os.cpu_count() or 1, options.cache_dir
    if share is not None:
        with _progress() as progress:
            made = make_share(Inputs(source, tokenizer, cache_dir, noise), share, processes, progress)
        _show_share(share, made)
        return
    with _progress() as progress:
        prepared = prepare_data(source, tokenizer, cache_dir, processes=processes, progress=progress, noise=noise)
        if options.store is not None:
            write_store(prepared, options.store, progress or LogProgress())
    _show(prepared)
    if options.store is not None:
        echo(f"written: data=prepared data.root={options.store}")
    for problem in text_problems(source, prepared.tgt_tokenizer, cache_dir):
        echo(f"warning: {problem}")


def _share(part: str) -> Share:
    found = _SHARE.fullmatch(part)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(
            f"part is {part!r}, expected K/N for number K of N hosts, from 1/N to N/N; write part=1/4, for example"
        )
    return Share(int(found[1]), int(found[2]))


@contextmanager
def _progress() -> Iterator[ShowProgress | None]:
    """Draws bars in a terminal; None elsewhere, where progress is logged."""
    console = plain_console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield draw if console.is_terminal else None


def _show_share(share: Share, made: ShareMade) -> None:
    name = f"part {share.number} of {share.hosts}: {made.parts:,} parts of text are cleaned"
    if made.has_ids:
        echo(f"{name} and encoded; when those of all are, softsearch prepare without part= joins them")
    else:
        echo(
            f"{name}; the tokenizer needs the text of all: when all have ended, give the same commands again for the "
            "token ids"
        )


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
