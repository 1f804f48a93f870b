"""Input of a translation, in blocks of lines and feature vectors."""

import re
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO

from softsearch.errors import CorpusError, InputError
from softsearch.runtime.translator import BLOCK_LINES
from softsearch.text.corpus import MAX_LINE_BYTES, decode_line, refuse_unusual_lines
from softsearch.text.features import Features, read_features
from softsearch.text.file_kinds import other_kind
from softsearch.text.joint_sources import join_sources

_BLOCK_BYTES = 4 * MAX_LINE_BYTES
_LINE_END = re.compile(rb"\r?\n?\Z")


@contextmanager
def open_input(path: Path | None) -> Iterator[IO[bytes]]:
    """Opens a file, or standard input.

    Raises:
        InputError: it cannot be read.
    """
    if path is None:
        if sys.stdin is None:
            raise InputError("standard input is closed; expected the lines to translate, or --input FILE")
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise _unreadable(str(path), error) from error
    with stream:
        yield stream


def read_input(stack: ExitStack, path: Path) -> Iterator[str]:
    """The lines of a file, which is closed with the stack; raises as ``open_input`` and ``read_blocks``."""
    return chain.from_iterable(_blocks(stack.enter_context(open_input(path)), path))


def read_blocks(
    source: IO[bytes], paths: Sequence[Path], features: Path | None, *, keep_ends: bool, markup: bool
) -> Iterator[tuple[int, list[str] | None, Features | None]]:
    """Yields blocks of lines, of feature vectors, or of both, with their sizes.

    Args:
        source: the first file, open, or standard input.
        paths: the files with text, none for standard input; of several the lines are joined.
        features: the file with vectors, if any.
        keep_ends: whether lines keep their ends.
        markup: whether an element may go on in the next line.

    Raises:
        InputError: a file cannot be read, is not UTF-8, or does not fit the others.
        CorpusError: the vectors have the wrong type or shape.
    """
    first = next(iter(paths), None)
    blocks = _joined_blocks(source, paths) if len(paths) > 1 else _blocks(source, first, keep_ends=keep_ends)
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


def _blocks(source: IO[bytes], path: Path | None, *, keep_ends: bool = False) -> Iterator[list[str]]:
    """Yields decoded lines in blocks; from a terminal, one line at a time, so that each is answered immediately."""
    name = "standard input" if path is None else str(path)
    most = 1 if source.isatty() else BLOCK_LINES
    block: list[str] = []
    size = 0
    try:
        for number, raw in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES + len(BOM_UTF8 + b"\r\n")), b""), 1):
            if number == 1:
                if found := other_kind(raw):
                    raise InputError(f"{name} is {found}")
                refuse_unusual_lines(raw, name)
            line = decode_line(raw.removesuffix(b"\n"), name, number)
            block.append(line + _LINE_END.findall(raw)[0].decode() if keep_ends else line)
            size += len(raw)
            if len(block) >= most or size >= _BLOCK_BYTES:
                yield block
                block, size = [], 0
    except CorpusError as error:
        raise InputError(str(error)) from error
    except OSError as error:  # a folder, or a failing disk
        raise _unreadable(name, error) from error
    if block:
        yield block


def _joined_blocks(source: IO[bytes], paths: Sequence[Path]) -> Iterator[list[str]]:
    """Yields blocks of lines that join the sources from all files; the first file is already open."""
    with ExitStack() as stack:
        opened = [source, *(stack.enter_context(open_input(path)) for path in paths[1:])]
        rows, read = zip_longest(*map(chain.from_iterable, map(_blocks, opened, paths))), 0
        while block := list(islice(rows, BLOCK_LINES)):
            if None in block[-1]:
                further = Counter(at for row in chain(block, rows) for at, line in enumerate(row) if line is not None)
                found = ", ".join(f"{path} has {read + further[at]} lines" for at, path in enumerate(paths))
                raise InputError(f"{found}; expected the same sentences in each, line by line")
            read += len(block)
            yield list(map(join_sources, block))


def _unreadable(name: str, error: OSError) -> InputError:
    return InputError(f"{name} cannot be read ({error.strerror}); expected a file with lines of text")
