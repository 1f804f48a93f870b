"""Input of a translation, in blocks of lines and feature vectors, and lines that are left blank."""

import os
import re
import select
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from stat import S_ISREG
from typing import IO

from softsearch.errors import CorpusError, InputError, SoftsearchError
from softsearch.runtime.translator import BLOCK_LINES
from softsearch.text.corpus import MAX_LINE_BYTES, decode_line, enter_text, reading_errors, refuse_unusual_lines
from softsearch.text.features import Features, read_features
from softsearch.text.file_kinds import other_kind
from softsearch.text.joint_sources import join_sources

BLOCK_BYTES = 4 * MAX_LINE_BYTES
_AT_ONCE = 1 << 16  # bytes
_LONGEST = MAX_LINE_BYTES + len(BOM_UTF8 + b"\r\n")
_PATIENCE = 10  # milliseconds that a pipe may need for more lines of a block
_LISTED = 50  # numbers of lines in a message
InputBlock = tuple[int, list[str] | None, Features | None]  # number of lines, the lines, and their feature vectors
_LINE_END = re.compile(rb"\r?\n?\Z")


@dataclass
class BlankLines:
    """Lines that cannot be read or translated, and are left blank where that is ``allowed``."""

    allowed: bool = False
    advice: str = ""  # at the end of errors where it is not
    count: int = 0
    first: list[int] = field(default_factory=list)  # numbers of the first of them
    reason: str = ""  # of the first
    unread: set[int] = field(default_factory=set)  # numbers of those that could not be read

    def add(self, number: int, error: SoftsearchError) -> None:
        """Counts a line, or raises the error if lines must not be left blank."""
        if not self.allowed:
            raise InputError(f"{error}{self.advice}") from error
        self.count += 1
        self.reason = self.reason or str(error)
        if len(self.first) < _LISTED:
            self.first.append(number)

    def message(self, lines: int) -> str:
        """Lists them; ``lines`` is the number of all lines."""
        more = f" and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return (
            f"{self.count:,} of {lines:,} lines could not be translated, and {'is' if self.count == 1 else 'are'} "
            f"empty in the output: {', '.join(map(str, sorted(self.first)))}{more}. The first: {self.reason}"
        )


@contextmanager
def open_input(path: Path | None) -> Iterator[IO[bytes]]:
    """Opens a file, plain or compressed, or standard input.

    Raises:
        InputError: it cannot be read.
    """
    if path is None:
        if sys.stdin is None:
            raise InputError("standard input is closed; expected the lines to translate, or --input FILE")
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            with reading_errors(path):
                is_device = path.exists() and not (path.is_file() or path.is_dir() or path.is_fifo())
                stream = stack.enter_context(path.open("rb")) if is_device else enter_text(stack, path)
        except CorpusError as error:
            raise InputError(str(error)) from error
        yield stream


def read_input(stack: ExitStack, path: Path) -> Iterator[str]:
    """The lines of a file, which is closed with the stack; raises as ``open_input`` and ``read_blocks``."""
    return chain.from_iterable(_blocks(stack.enter_context(open_input(path)), path, BlankLines()))


def read_blocks(
    source: IO[bytes], paths: Sequence[Path], features: Path | None, blank: BlankLines, *, keep_ends: bool, markup: bool
) -> Iterator[InputBlock]:
    """Yields blocks of lines, of feature vectors, or of both, with their sizes; an empty one before it has to wait.

    Args:
        source: the first file, open, or standard input.
        paths: the files with text, none for standard input; of several the lines are joined.
        features: the file with vectors, if any.
        blank: gets the lines that cannot be read, which become "".
        keep_ends: whether lines keep their ends.
        markup: whether an element may go on in the next line.

    Raises:
        InputError: a file cannot be read, is not UTF-8, or does not fit the others.
        CorpusError: the vectors have the wrong type or shape.
    """
    first = next(iter(paths), None)
    several = len(paths) > 1
    blocks = _joined_blocks(source, paths, blank) if several else _blocks(source, first, blank, keep_ends=keep_ends)
    if markup:
        from softsearch.runtime.markup import join_fragments

        blocks = join_fragments(blocks)
    if features is None:
        yield from ((len(block), block, None) for block in blocks)
        return
    vectors, read = read_features(features), 0
    if first is None:
        parts = (vectors[begin : begin + BLOCK_LINES] for begin in range(0, len(vectors), BLOCK_LINES))
        yield from ((len(part), None, part) for part in parts)
        return
    for block in blocks:
        begin, read = read, read + len(block)
        if read > len(vectors):
            break
        yield len(block), block, vectors[begin:read]
    if read != len(vectors):
        lines = "more" if read > len(vectors) else read
        raise InputError(
            f"{features} has {len(vectors)} examples and {first} has {lines} lines; expected one line for each example"
        )


def _blocks(source: IO[bytes], path: Path | None, blank: BlankLines, *, keep_ends: bool = False) -> Iterator[list[str]]:
    """Yields decoded lines in blocks, which end early where a pipe has nothing more for now; then comes an empty one.

    From a terminal they have one line.
    """
    name = "standard input" if path is None else str(path)
    most = 1 if source.isatty() else BLOCK_LINES
    block: list[str] = []
    size = number = 0
    try:
        with reading_errors(name):
            for raw in _raw_lines(source):
                if raw is None:
                    if block:
                        yield block
                        block, size = [], 0
                    yield []  # so that what has been read is answered before this waits
                    continue
                number += 1
                if number == 1:
                    if found := other_kind(raw):
                        raise InputError(f"{name} is {found}")
                    refuse_unusual_lines(raw, name)
                line = decoded(raw.removesuffix(b"\n"), name, number, blank)
                block.append(line + _LINE_END.findall(raw)[0].decode() if keep_ends else line)
                size += len(raw)
                if len(block) >= most or size >= BLOCK_BYTES:
                    yield block
                    block, size = [], 0
    except CorpusError as error:
        raise InputError(str(error)) from error
    if block:
        yield block


def decoded(raw: bytes, name: str, number: int, blank: BlankLines) -> str:
    """Decodes a line; one that cannot be read is "" if it may be blank; raises InputError otherwise."""
    try:
        return decode_line(raw, name, number)
    except CorpusError as error:
        blank.add(number, error)
        blank.unread.add(number)
        return ""


def _raw_lines(source: IO[bytes]) -> Iterator[bytes | None]:
    """Yields lines with their ends, cut just above the limit, and None where reading on would have to wait."""
    has_more, rest, skips = _readiness(source), b"", False
    while True:
        if not has_more():
            yield None
        chunk = source.read1(_AT_ONCE)  # type: ignore[attr-defined]  # buffered streams have it
        if not chunk:
            break
        if skips:
            _, found, chunk = chunk.partition(b"\n")
            skips = not found
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(rest) > _LONGEST:
            yield rest[:_LONGEST] + b"\n"
            rest, skips = b"", True
    if rest:
        yield rest


def _readiness(source: IO[bytes]) -> Callable[[], bool]:
    """Returns a function that tells whether something can be read at once; always true for files, and on Windows."""
    try:
        descriptor = source.fileno()
        if S_ISREG(os.fstat(descriptor).st_mode) or not hasattr(select, "poll"):
            return lambda: True
    except OSError:  # in memory
        return lambda: True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: bool(poll.poll(_PATIENCE))


def _joined_blocks(source: IO[bytes], paths: Sequence[Path], blank: BlankLines) -> Iterator[list[str]]:
    """Yields blocks of lines that join the sources from all files; the first file is already open."""
    with ExitStack() as stack:
        opened = [source, *(stack.enter_context(open_input(path)) for path in paths[1:])]
        blocks = (_blocks(each, path, blank) for each, path in zip(opened, paths, strict=True))
        rows, read = zip_longest(*map(chain.from_iterable, blocks)), 0
        while block := list(islice(rows, BLOCK_LINES)):
            if None in block[-1]:
                further = Counter(at for row in chain(block, rows) for at, line in enumerate(row) if line is not None)
                found = ", ".join(f"{path} has {read + further[at]} lines" for at, path in enumerate(paths))
                raise InputError(f"{found}; expected the same sentences in each, line by line")
            yield ["" if at in blank.unread else join_sources(row) for at, row in enumerate(block, read + 1)]
            read += len(block)
