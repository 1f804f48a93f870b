"""Lines from a stream through a translator to a stream, in blocks: memory stays bounded however long the input is."""

import codecs
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from softsearch.errors import InputError
from softsearch.runtime.translator import Translation, Translator
from softsearch.text.corpus import MAX_LINE_BYTES

_BLOCK_LINES = 1024  # enough to fill batches with sentences of like length
_BLOCK_BYTES = 4 * MAX_LINE_BYTES


@dataclass(frozen=True)
class StreamOptions:
    """Where lines come from and go to; None is standard input or output."""

    input: Path | None
    output: Path | None
    alignments: Path | None  # JSON lines, one for each translation
    n_best: bool  # write `line ||| text ||| score`, lines counted from 0 as Moses does
    prefixes: Path | None = None  # what each translation begins with, line by line


def translate_stream(translator: Translator, options: StreamOptions) -> int:
    """Translates line by line: each line in gives one line out (or its n best), in order, block after block.

    Files named in ``options`` appear when all is done, or not at all.

    Returns:
        How many lines have a translation that exact search could not prove to be the best.

    Raises:
        InputError: the input is missing or not UTF-8, or a line cannot be translated, or there is not one prefix for
            each line; the blocks before it are written.
    """
    with ExitStack() as stack:
        source = stack.enter_context(_open_input(options.input))
        output = stack.enter_context(open_output(options.output)) if options.output else sys.stdout.buffer
        alignments = stack.enter_context(open_output(options.alignments)) if options.alignments else None
        prefixes = _Prefixes(options.prefixes, stack) if options.prefixes else None
        number = unproven = 0
        for block in _blocks(source, str(options.input or "standard input")):
            begins = None if prefixes is None else prefixes.take(len(block))
            for translations in translator.translate(block, prefixes=begins, first_line=number + 1):
                output.write(_format(translations, number, n_best=options.n_best).encode())
                number += 1
                unproven += translations[0].optimal is False
                if alignments:
                    alignments.write(_format_alignments(translations, number).encode())
            output.flush()
        if prefixes is not None:
            prefixes.check_end()
    return unproven


class _Prefixes:
    """The lines of a file of prefixes, read as far as the input is."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path, self._read = path, 0
        self._lines = chain.from_iterable(_blocks(stack.enter_context(_open_input(path)), str(path)))

    def take(self, count: int) -> list[str]:
        lines = list(islice(self._lines, count))
        self._read += len(lines)
        if len(lines) < count:
            raise InputError(
                f"{self._path} has {self._read} lines and the input more; expected one prefix, which may be empty, for "
                "each line"
            )
        return lines

    def check_end(self) -> None:
        if next(self._lines, None) is not None:
            raise InputError(
                f"{self._path} has more lines than the input's {self._read}; expected one prefix for each line"
            )


def _format(translations: list[Translation], index: int, *, n_best: bool) -> str:
    if not n_best:
        return f"{translations[0].text}\n"
    return "".join(f"{index} ||| {found.text} ||| {found.score:.6f}\n" for found in translations)


def _format_alignments(translations: list[Translation], line: int) -> str:
    records = (
        {
            "line": line,
            "rank": rank,
            "src_pieces": found.src_pieces,
            "tgt_pieces": found.tgt_pieces,
            "matrix": [] if found.alignments is None else np.round(found.alignments.astype(float), 4).tolist(),
        }
        for rank, found in enumerate(translations, start=1)
    )
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def _blocks(source: IO[bytes], name: str) -> Iterator[list[str]]:
    """Decoded lines in blocks; someone who types gets an answer to each line."""
    most = 1 if source.isatty() else _BLOCK_LINES
    block: list[str] = []
    size = 0
    number = 0
    while raw := source.readline(MAX_LINE_BYTES + len(b"\r\n")):
        number += 1
        block.append(_decode(raw, name, number))
        size += len(raw)
        if len(block) >= most or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _decode(raw: bytes, name: str, number: int) -> str:
    start = len(codecs.BOM_UTF8) if number == 1 and raw.startswith(codecs.BOM_UTF8) else 0
    body = raw[start:].removesuffix(b"\n").removesuffix(b"\r")
    if len(body) > MAX_LINE_BYTES:
        raise InputError(
            f"{name}:{number} is longer than {MAX_LINE_BYTES} bytes; expected one sentence per line, split it"
        )
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}:{number}:{start + error.start + 1} is not UTF-8: byte 0x{body[error.start]:02x} "
            f"({error.reason}); convert the input to UTF-8"
        ) from error


@contextmanager
def _open_input(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); expected a text file, check the path") from error
    with stream:
        yield stream


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name only once it is complete; pipes and devices are written as they are."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); check that its folder exists") from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
