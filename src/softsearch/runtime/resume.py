"""Resuming a translation that was cut off: how much of its output files is whole."""

import json
import os
from pathlib import Path

from softsearch.errors import InputError
from softsearch.runtime.output import partial_path


def finished_lines(output: Path | None, alignments: Path | None, *, n_best: bool, block: int) -> int:
    """Returns the number of input lines whose translations are written, and cuts the partial files behind them.

    It is a multiple of ``block``, so that the rest is translated in the batches of a run that was never cut off.

    Raises:
        InputError: there is no output file, or it is complete already, or the partial file is another program's.
    """
    if output is None:
        raise InputError("--resume continues a file; expected --output FILE as well")
    for path in filter(None, (output, alignments)):
        if path.exists():
            raise InputError(f"{path} is complete; remove it to translate again, or leave out --resume")
    written = [(partial_path(output), "n-best" if n_best else "plain")]
    written += [] if alignments is None else [(partial_path(alignments), "alignments")]
    done = min(_scan(path, form)[0] for path, form in written) // block * block
    for path, form in written:
        if path.exists():
            os.truncate(path, _scan(path, form, done)[1])
    return done


def _scan(path: Path, form: str, stop: int | None = None) -> tuple[int, int]:
    """The number of input lines whose output is whole, and the offset of line ``stop``, or of the rest.

    Of several lines of output for a line of input, the last may be missing, so that line does not count.
    """
    begin, last = 0, -1
    if not path.exists():
        return 0, 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            if not line.endswith(b"\n"):
                break
            try:
                index = number
                if form != "plain":
                    index = int(line.split(b" ", 1)[0]) if form == "n-best" else json.loads(line)["line"] - 1
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}:{number + 1} is not what this command writes; remove the file") from error
            if index == stop:
                break
            begin, last = begin + len(line), index
    return (last + 1 if form == "plain" else max(0, last)), begin
