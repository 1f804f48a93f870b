r"""Strict reading of parallel text: what is not two aligned files of UTF-8 lines is an error or is counted.

Lines end at ``b"\n"`` and nowhere else: U+2028, U+0085, vertical tab and form feed are characters of their line, as in
every tool that counts bytes. Reading is streamed and lines are capped, so that memory stays bounded whatever the file.
"""

import gzip
import logging
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

from softsearch.errors import CorpusError

MAX_LINE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What reading found; every figure counts pairs, a finding on either side or on both being one."""

    src: Path
    tgt: Path
    lines: int
    kept: int
    empty: int = 0  # one side or both; dropped, unless empty lines are kept
    over_long: int = 0  # dropped
    invalid: int = 0  # not UTF-8; dropped, and only with on_error="skip"
    cleaned: int = 0  # a byte order mark or carriage returns were removed
    control: int = 0  # kept as they are: control characters or line separators inside
    identical: int = 0  # kept: source and target are the same text

    def summary(self) -> str:
        """Returns one line: the files, the pairs kept, and every finding that is not zero."""
        findings = (
            (self.empty, "with an empty side"),
            (self.over_long, "over-long"),
            (self.invalid, "not UTF-8"),
            (self.cleaned, "with a byte order mark or carriage returns removed"),
            (self.control, "with control characters"),
            (self.identical, "with the same text on both sides"),
        )
        found = "".join(f"; {count} {what}" for count, what in findings if count)
        return f"{self.src} | {self.tgt}: {self.kept} of {self.lines} pairs kept{found}"


@dataclass(frozen=True)
class ParallelCorpus:
    """Aligned lines: ``src[i]`` and ``tgt[i]`` are one pair, found on line ``numbers[i]`` (from 1) of both files."""

    src: list[str]
    tgt: list[str]
    numbers: list[int]
    report: CorpusReport


def is_blank(text: str) -> bool:
    """Whether the text shows nothing: it is empty or all white space, control and format characters."""
    return all(unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp") for char in text)


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file (plain, gzip or xz, whatever its name) without their ends.

    A byte order mark at the start and the CR of a CRLF are removed; a lone CR becomes a space.

    Raises:
        CorpusError: the file is missing, empty, damaged or not UTF-8, or a line is longer than 1 MiB.
    """
    for line in _read(path):
        if line.problem:
            raise CorpusError(line.message)
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
    ``on_error="skip"``, with a side that is not UTF-8. The report counts them.

    Args:
        src: the source file, read as by :func:`read_lines`.
        tgt: the target file.
        max_chars: the most characters that a line may have.
        keep_empty: keep every line, as a test set must: nothing is dropped, and what cannot be read is an error.
        on_error: whether a line that is not UTF-8 is an error or drops its pair.

    Raises:
        CorpusError: a file cannot be read, the line counts differ, or no pair is left.
    """
    fatal = {"over_long", "invalid"} if keep_empty else {"invalid"} if on_error == "raise" else set()
    kept: tuple[list[str], list[str], list[int]] = [], [], []
    counts: Counter[str] = Counter()
    for pair in _aligned(src, tgt):
        for line in pair:
            if line.problem in fatal:
                raise CorpusError(line.message)
        reason = _reason_to_drop(pair, max_chars)
        findings = {
            reason: bool(reason),
            "cleaned": any(line.cleaned for line in pair),
            "control": any(_CONTROL.search(line.text) for line in pair),
            "identical": not reason and pair[0].text == pair[1].text,
        }
        counts.update(finding for finding, present in findings.items() if present)
        counts["lines"] += 1
        if keep_empty or not reason:
            kept[0].append(pair[0].text)
            kept[1].append(pair[1].text)
            kept[2].append(counts["lines"])
    if keep_empty:
        del counts["over_long"]  # longer than max_chars, and kept
    report = CorpusReport(src=src, tgt=tgt, kept=len(kept[0]), **counts)
    _check(report)
    return ParallelCorpus(*kept, report)


class _Line(NamedTuple):
    text: str
    cleaned: bool = False
    problem: Literal["", "over_long", "invalid"] = ""
    message: str = ""


def _reason_to_drop(pair: tuple[_Line, _Line], max_chars: int) -> str:
    for line in pair:
        if line.problem:
            return line.problem
    if any(is_blank(line.text) for line in pair):
        return "empty"
    return "over_long" if any(len(line.text) > max_chars for line in pair) else ""


def _check(report: CorpusReport) -> None:
    if not report.kept:
        raise CorpusError(f"no usable pair in {report.summary()}; expected text on both sides, look at the files")
    if report.src.samefile(report.tgt):
        _log.warning("source and target are the same file, %s; check the two paths", report.src)
    elif report.identical * 2 > report.kept:
        _log.warning("source and target are mostly the same text, check the two paths: %s", report.summary())


def _aligned(src: Path, tgt: Path) -> Iterator[tuple[_Line, _Line]]:
    src_lines, tgt_lines = _read(src), _read(tgt)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines)):
        if src_line is None or tgt_line is None:
            src_count = number + (src_line is not None) + sum(1 for _ in src_lines)
            tgt_count = number + (tgt_line is not None) + sum(1 for _ in tgt_lines)
            raise CorpusError(
                f"the line counts differ: {src} has {src_count} lines, {tgt} has {tgt_count}; "
                f"expected one translation per line, so remove or add lines until both match"
            )
        yield src_line, tgt_line


def _read(path: Path) -> Iterator[_Line]:
    number = 0
    with _readable(path) as stream:
        for number, raw in enumerate(_raw_lines(stream), start=1):
            yield _decode(raw, path, number)
    if not number:
        raise CorpusError(f"{path} is empty; expected one sentence per line")


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    """Opens by magic bytes, and turns what the operating system and the decompressors raise into CorpusError."""
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
    """Yields lines without the newline; of one over the cap, only as much as shows that it is."""
    while raw := stream.readline(MAX_LINE_BYTES + len(_BOM + b"\r\n")):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE_BYTES)
        yield raw.removesuffix(b"\n")


def _decode(raw: bytes, path: Path, number: int) -> _Line:
    start = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
    body = raw[start:].removesuffix(b"\r")
    if len(body) > MAX_LINE_BYTES:
        message = f"{path}:{number} is longer than {MAX_LINE_BYTES} bytes; expected one sentence per line, split it"
        return _Line("", problem="over_long", message=message)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{path}:{number}:{start + error.start + 1}"
        message = f"{where} is not UTF-8: byte 0x{body[error.start]:02x} ({error.reason}); convert the file to UTF-8"
        return _Line("", problem="invalid", message=message)
    return _Line(text.replace("\r", " "), cleaned=body != raw or "\r" in text)
