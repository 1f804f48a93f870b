r"""Strict, streamed reading of parallel text: two aligned files of UTF-8 lines.

Lines end at ``b"\n"`` and nowhere else: U+2028, U+0085, vertical tab and form feed are characters of their line.
Lines are capped, so that memory stays bounded.
"""

import gzip
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

from softsearch.errors import CorpusError
from softsearch.text.corpus_report import CorpusReport
from softsearch.text.filters import Filters

MAX_LINE_BYTES = 1 << 20
_CHUNK_PAIRS, _CHUNK_BYTES = 4096, 4 << 20  # together: of 4,096 lines each could be as long as it may
_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")


class LineError(CorpusError):
    """A line that is not UTF-8."""

    problem: Literal["over_long", "invalid"] = "invalid"


class OverLongLineError(LineError):
    """A line that is too long."""

    problem = "over_long"


class _Line(NamedTuple):
    text: str
    cleaned: bool = False
    lone_cr: bool = False
    error: LineError | None = None


@dataclass(frozen=True)
class ParallelCorpus:
    """Aligned lines: ``src[i]`` and ``tgt[i]`` are one pair, found on line ``numbers[i]`` (from 1) of both files."""

    src: list[str]
    tgt: list[str]
    numbers: list[int]
    report: CorpusReport


class RawPairs(NamedTuple):
    """Consecutive lines of two files, undecoded, without their newlines."""

    number: int  # of the first, from 1
    src: list[bytes]
    tgt: list[bytes]


class CleanPairs(NamedTuple):
    """The text of the kept pairs."""

    src: list[str]
    tgt: list[str]
    numbers: list[int]
    counts: Counter[str]  # by the names of CorpusReport's counts


@dataclass(frozen=True, kw_only=True)
class Cleaner:
    """Decodes raw lines, drops pairs (never single lines), and counts findings.

    Chunks are independent: they may be cleaned in different processes.
    """

    src: Path  # for messages, as tgt
    tgt: Path
    max_chars: int = 10_000  # the most characters that a line may have
    keep_empty: bool = False  # keep every line, as a test set must: nothing is dropped, unreadable lines are errors
    filters: Filters = field(default_factory=Filters)

    def __call__(self, raw: RawPairs) -> CleanPairs:
        """Returns the text of the kept pairs.

        Raises:
            CorpusError: a line cannot be read, and dropping its pair is not allowed.
        """
        clean = CleanPairs([], [], [], Counter(lines=len(raw.src)))
        for number, sides in enumerate(zip(raw.src, raw.tgt, strict=True), start=raw.number):
            pair = _decode(sides[0], self.src, number), _decode(sides[1], self.tgt, number)
            reason = self._reason(pair)
            clean.counts.update(_findings(pair, reason))
            if self.keep_empty or not reason:
                clean.src.append(pair[0].text)
                clean.tgt.append(pair[1].text)
                clean.numbers.append(number)
        if self.keep_empty:
            del clean.counts["over_long"]  # longer than max_chars, and kept
        return clean

    def _reason(self, pair: tuple[_Line, _Line]) -> str:
        """Why a pair is dropped; "" if it is kept."""
        src, tgt = pair
        errors = [line.error for line in pair if line.error]
        for error in errors:
            if self.keep_empty or (error.problem == "invalid" and self.filters.on_error == "raise"):
                raise error
        if errors:
            return errors[0].problem
        if is_blank(src.text) or is_blank(tgt.text):
            return "empty"
        if max(len(src.text), len(tgt.text)) > self.max_chars:
            return "over_long"
        return "" if self.keep_empty else self.filters.reason(src.text, tgt.text)


def is_blank(text: str) -> bool:
    """Whether the text is empty or all white space, control and format characters."""
    return all(unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp") for char in text)


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file (plain, gzip or xz, whatever its name) without their ends.

    A byte order mark at the start and the CR of a CRLF are removed; a lone CR becomes a space.

    Raises:
        CorpusError: the file is missing, empty, damaged or not UTF-8, or a line is longer than 1 MiB.
    """
    for number, raw in enumerate(_read(path), start=1):
        line = _decode(raw, path, number)
        if line.error:
            raise line.error
        yield line.text


def read_parallel(
    src: Path,
    tgt: Path,
    *,
    max_chars: int = 10_000,
    keep_empty: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
) -> ParallelCorpus:
    """Reads two files whose n-th lines translate each other.

    Pairs are dropped, never single lines: those with a blank side, with a side over ``max_chars`` characters and, with
    ``on_error="skip"``, with a side that is not UTF-8. The report counts them. With ``keep_empty`` nothing is dropped,
    as a test set needs it, and what cannot be read is an error.

    Raises:
        CorpusError: a file cannot be read, the line counts differ, or no pair is left.
    """
    clean = Cleaner(src=src, tgt=tgt, max_chars=max_chars, keep_empty=keep_empty, filters=Filters(on_error=on_error))
    kept = CleanPairs([], [], [], Counter())
    for chunk in map(clean, read_raw(src, tgt)):
        kept.src.extend(chunk.src)
        kept.tgt.extend(chunk.tgt)
        kept.numbers.extend(chunk.numbers)
        kept.counts.update(chunk.counts)
    report = CorpusReport(src=src, tgt=tgt, kept=len(kept.src), **kept.counts)
    report.check()
    return ParallelCorpus(kept.src, kept.tgt, kept.numbers, report)


def read_raw(src: Path, tgt: Path) -> Iterator[RawPairs]:
    """Yields the undecoded lines of two files, some thousand pairs or 4 MiB at a time.

    Raises:
        CorpusError: a file cannot be read, or the line counts differ.
    """
    chunk, size = RawPairs(1, [], []), 0
    for src_line, tgt_line in _aligned(src, tgt):
        chunk.src.append(src_line)
        chunk.tgt.append(tgt_line)
        size += len(src_line) + len(tgt_line)
        if len(chunk.src) == _CHUNK_PAIRS or size > _CHUNK_BYTES:
            yield chunk
            chunk, size = RawPairs(chunk.number + len(chunk.src), [], []), 0
    if chunk.src:
        yield chunk


def _findings(pair: tuple[_Line, _Line], reason: str) -> list[str]:
    """The names of the counts that a pair adds one to."""
    src, tgt = pair
    holds = {
        reason: bool(reason),
        "cleaned": src.cleaned or tgt.cleaned,
        "lone_cr": src.lone_cr or tgt.lone_cr,
        "control": _CONTROL.search(src.text) or _CONTROL.search(tgt.text),
        "identical": not reason and src.text == tgt.text,
    }
    return [name for name, value in holds.items() if value]


def _aligned(src: Path, tgt: Path) -> Iterator[tuple[bytes, bytes]]:
    src_lines, tgt_lines = _read(src), _read(tgt)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines)):
        if src_line is None or tgt_line is None:
            src_count = number + (src_line is not None) + sum(1 for _ in src_lines)
            tgt_count = number + (tgt_line is not None) + sum(1 for _ in tgt_lines)
            raise CorpusError(
                f"the line counts differ: {src} has {src_count} lines, {tgt} has {tgt_count}; line {number + 1} is in "
                "one of them only; expected one translation per line, so remove or add lines until both match"
            )
        yield src_line, tgt_line


def _read(path: Path) -> Iterator[bytes]:
    with _readable(path) as stream:
        lines = _raw_lines(stream)
        first = next(lines, None)
        if first is None:
            raise CorpusError(f"{path} is empty; expected one sentence per line")
        refuse_utf16(first, str(path))
        yield first
        yield from lines


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    """Opens by magic bytes, and turns errors of the system and the decompressors into CorpusError."""
    try:
        with ExitStack() as stack:
            stream = stack.enter_context(path.open("rb"))
            magic = stream.peek(len(_XZ_MAGIC))
            if magic.startswith(_GZIP_MAGIC):
                yield cast(IO[bytes], stack.enter_context(gzip.open(stream)))
            elif magic.startswith(_XZ_MAGIC):
                yield stack.enter_context(lzma.open(stream))
            else:
                yield stream
    except FileNotFoundError as error:
        raise CorpusError(f"{path} does not exist; expected a text file, check the path") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise CorpusError(f"{path} is truncated or damaged ({error}); compress or download it again") from error
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); expected a readable text file") from error


def _raw_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yields lines without the newline; one over the cap is cut just above it."""
    while raw := stream.readline(MAX_LINE_BYTES + len(_BOM + b"\r\n")):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE_BYTES)
        yield raw.removesuffix(b"\n")


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Decodes a line without its newline; a byte order mark on line 1 and the CR of a CRLF are removed.

    Raises:
        LineError: it is too long or not UTF-8.
    """
    start = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
    body = raw[start:].removesuffix(b"\r")
    if len(body) > MAX_LINE_BYTES:
        message = f"{name}:{number} is longer than {MAX_LINE_BYTES} bytes; expected one sentence per line, split it"
        raise OverLongLineError(message)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{name}:{number}:{start + error.start + 1}"
        message = f"{where} is not UTF-8: byte 0x{body[error.start]:02x} ({error.reason}); convert the file to UTF-8"
        raise LineError(message) from error


def refuse_utf16(first: bytes, name: str) -> None:
    """Checks the first line of a file: UTF-16 has its mark, or every second byte and no other is 0.

    Raises:
        CorpusError: the file is UTF-16.
    """
    halves = first[::2], first[1::2]
    unmarked = len(first) >= 4 and any(not any(half) and 0 not in other for half, other in (halves, halves[::-1]))
    if unmarked or first.startswith(_UTF16_MARKS):
        raise CorpusError(f"{name} is UTF-16, expected UTF-8; convert it, as with: iconv -f UTF-16 -t UTF-8")


def _decode(raw: bytes, path: Path, number: int) -> _Line:
    try:
        text = decode_line(raw, str(path), number)
    except LineError as error:
        return _Line("", error=error)
    cleaned = raw.endswith(b"\r") or (number == 1 and raw.startswith(_BOM))
    return _Line(text.replace("\r", " "), cleaned=cleaned, lone_cr="\r" in text)
