r"""Strict, streamed reading of text: files of UTF-8 lines, alone or aligned in pairs.

Lines end only at ``b"\n"``: U+2028, U+0085, vertical tab and form feed are ordinary characters.
Line length is limited, so that memory stays bounded.
"""

import bz2
import gzip
import io
import lzma
import re
import unicodedata
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from softsearch.errors import ConfigError, CorpusError
from softsearch.files import open_file

MAX_LINE_BYTES = 1 << 20
_CHUNK_PAIRS, _CHUNK_BYTES = 4096, 4 << 20  # whichever comes first
_HEAD = 8192  # bytes buffered from any file
_LONE_CR = re.compile(rb"\r+(?![\r\n]|\Z)")
PACKED = (".gz", ".xz", ".bz2", ".zst")  # usual file name suffixes; the first bytes decide


class LineError(CorpusError):
    """A line that is not UTF-8."""

    problem: Literal["over_long", "invalid"] = "invalid"


class OverLongLineError(LineError):
    """A line that is too long."""

    problem = "over_long"


class RawPairs(NamedTuple):
    """Consecutive lines of two files, undecoded, without their newlines."""

    number: int  # line number of the first pair, from 1
    src: list[bytes]
    tgt: list[bytes]


def is_blank(text: str) -> bool:
    """Returns whether the text has only white space, control and format characters."""
    return all(unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp") for char in text)


def read_lines(path: Path, *, of_json: bool = False) -> Iterator[str]:
    """Yields the lines of a UTF-8 file (plain, gzip, xz, bzip2 or Zstandard, under any name) without line ends.

    Of test sets of WMT and IWSLT in SGML or XML these are the segments.

    Byte order marks and the CR of a CRLF are removed; a lone CR becomes a space. JSON is refused
    unless it is ``of_json``.

    Raises:
        CorpusError: the file is missing, empty, damaged or not UTF-8, or a line is longer than 1 MiB.
    """
    for number, raw in enumerate(_read(path, of_json=of_json), start=1):
        yield decode_line(raw, str(path), number).replace("\r", " ")


def read_raw(src: Path, tgt: Path) -> Iterator[RawPairs]:
    """Yields the undecoded lines of two files, 4,096 pairs or 4 MiB at a time.

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


def _aligned(src: Path, tgt: Path) -> Iterator[tuple[bytes, bytes]]:
    src_lines, tgt_lines = _read(src), _read(tgt)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines)):
        if src_line is None or tgt_line is None:
            src_count = number + (src_line is not None) + sum(1 for _ in src_lines)
            tgt_count = number + (tgt_line is not None) + sum(1 for _ in tgt_lines)
            raise CorpusError(
                f"the line counts differ: {src} has {src_count} lines, {tgt} has {tgt_count}; line {number + 1} is in "
                "only one of them; expected one translation per line, so remove or add lines until both match"
            )
        yield src_line, tgt_line


def _read(path: Path, *, of_json: bool = False) -> Iterator[bytes]:
    """Yields lines without the newline."""
    from softsearch.text.file_kinds import has_segments, refuse_document, segments  # lines in memory need none of it

    with open_text(path) as stream:
        head = stream.peek(_HEAD)
        refuse_unusual_lines(head, str(path))
        if not of_json:
            refuse_document(head, path)
        lines = segments(_raw_lines(stream), path) if has_segments(head) else _raw_lines(stream)
        first = next(lines, None)
        if first is None:
            raise CorpusError(f"{path} is empty; expected one sentence per line")
        yield first
        yield from lines


def _open_zstandard(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(_pyarrow(file.name, "decompress it").CompressedInputStream(file, "zstd"))


@contextmanager
def packing_stream(file: IO[bytes]) -> Iterator[Any]:
    """A stream that compresses by Zstandard what is written to it into a file, which stays open.

    Raises:
        ConfigError: pyarrow is missing.
    """
    with _pyarrow(file.name, "choose another suffix").CompressedOutputStream(StaysOpen(file), "zstd") as stream:
        yield stream


class StaysOpen:
    """A file, or what has the same two methods, as pyarrow writes it, which would also close it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.write, self.flush = file.write, file.flush

    def close(self) -> None:
        """Does nothing."""


def _pyarrow(name: str, otherwise: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        from softsearch.process import how_to_install

        raise ConfigError(
            f"{name} is compressed by Zstandard, which needs pyarrow: {how_to_install('table')}; or {otherwise}"
        ) from error
    return pa


_OPENERS: Mapping[bytes, Callable[[Any], Any]] = {  # by the first bytes
    rb"\x1f\x8b": gzip.open,
    rb"\xfd7zXZ\x00": lzma.open,
    rb"BZh[1-9]1AY&SY": bz2.open,
    rb"\x28\xb5\x2f\xfd": _open_zstandard,
}


@contextmanager
def open_text(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a plain, gzip, xz, bzip2 or Zstandard file, under any name.

    Raises:
        ConfigError: it is Zstandard, and pyarrow is not installed.
        CorpusError: it cannot be read, is an archive or a pointer to a file, or reading fails in the system or the
            decompressor.
    """
    with reading_errors(path), ExitStack() as stack:
        yield enter_text(stack, path)


def enter_text(stack: ExitStack, path: Path) -> io.BufferedReader:
    """Opens a file as ``open_text`` until the stack is closed; raises what the system or the decompressor raises."""
    from softsearch.text.file_kinds import other_kind

    file = stack.enter_context(path.open("rb") if path.is_fifo() else open_file(path))  # such as <(zcat a.gz)
    first = file.peek(16)
    opener = next((opener for magic, opener in _OPENERS.items() if re.match(magic, first)), None)
    text = stack.enter_context(opener(file)) if opener else file
    if found := other_kind(text.peek(_HEAD)):
        raise CorpusError(f"{path} is {found}")
    return text


@contextmanager
def reading_errors(name: object) -> Iterator[None]:
    """Turns errors of the system and of decompressors into ones that name the file.

    Raises:
        CorpusError: the block raised such an error.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CorpusError(f"{name} does not exist; expected a text file, check the path") from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if not isinstance(error, OSError) or error.errno is None:  # from a decompressor
            message = f"{name} is truncated or damaged ({error}); compress or download it again"
        else:
            message = f"{name} cannot be read ({error.strerror}); expected a readable text file"
        raise CorpusError(message) from error


def _raw_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yields lines without the newline; a line over the limit is cut just above it."""
    while raw := stream.readline(MAX_LINE_BYTES + len(BOM_UTF8 + b"\r\n")):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE_BYTES)
        yield raw.removesuffix(b"\n")


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Decodes a line without its newline; byte order marks and the CR of a CRLF are removed.

    Marks stand at the start of any line of joined files; a vocabulary must not have them.

    Raises:
        LineError: it is too long or not UTF-8.
    """
    body = raw.removesuffix(b"\r")
    if len(body.removeprefix(BOM_UTF8)) > MAX_LINE_BYTES:
        message = f"{name}:{number} is longer than {MAX_LINE_BYTES} bytes; expected one sentence per line, split it"
        raise OverLongLineError(message)
    try:
        return body.decode("utf-8").replace("\ufeff", "")
    except UnicodeDecodeError as error:
        where = f"{name}:{number}:{error.start + 1}"
        message = f"{where} is not UTF-8: byte 0x{body[error.start]:02x} ({error.reason}); convert the file to UTF-8"
        raise LineError(message) from error


def refuse_unusual_lines(head: bytes, name: str) -> None:
    """Checks that the start of a file, at least its first line, is UTF-8, and that its lines end with LF, not CR alone.

    UTF-16 is recognised by its byte order mark, or if exactly every second byte of the first line is 0.

    Raises:
        CorpusError: the file is UTF-16, or its lines end with CR alone.
    """
    first = head.partition(b"\n")[0]
    halves = first[::2], first[1::2]
    unmarked = len(first) >= 4 and any(not any(half) and 0 not in other for half, other in (halves, halves[::-1]))
    if unmarked or first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise CorpusError(f"{name} is UTF-16, expected UTF-8; convert it, for example: iconv -f UTF-16 -t UTF-8")
    if _LONE_CR.subn(b"", head)[1] > head.count(b"\n"):
        raise CorpusError(
            f"{name} has lines that end with CR alone (old Mac OS), expected LF; convert it, such as: tr '\\r' '\\n'"
        )


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines, given without line ends, in UTF-8."""
    with path.open("wb") as file:
        file.writelines(f"{line}\n".encode() for line in lines)
