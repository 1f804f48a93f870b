"""Rows of tables: TSV, CSV, JSON Lines, Parquet and TMX files as pairs of cells, streamed."""

import csv
import difflib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, ParseError

from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES, PACKED, open_text, read_lines

Column = str | int
Pair = tuple[str, str]
_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_CODES = ("bpt", "ept", "it", "ph", "ut")
_MAX_UNIT_BYTES = 64 << 20


def read_rows(path: Path, name: str, columns: tuple[Column, Column]) -> Iterator[Pair]:
    """Yields the source and the target cell of every row; the suffix of ``name`` is the kind of table.

    Raises:
        ConfigError: the kind is none of ours, a column does not exist, or a library is missing.
        CorpusError: the file is damaged; the message names the row or the line.
    """
    suffixes = [suffix for suffix in Path(name).suffixes if suffix not in PACKED]
    kind = suffixes[-1].lower() if suffixes else ""
    if kind not in _READERS:
        raise ConfigError(
            f"{name} is no table by its name, expected one of {', '.join(_READERS)} (all but .parquet also as "
            f"{', '.join(PACKED)}); rename it, or use data=parallel for two files of lines"
        )
    if kind not in (".tsv", ".csv") and any(isinstance(column, int) for column in columns):
        raise ConfigError(f"data.src and data.tgt are {columns}, but {name} has columns by name; give their names")
    yield from _checked(_READERS[kind](path, columns))


def read_mappings(rows: Iterable[Mapping[str, Any]], name: str, columns: tuple[Column, Column]) -> Iterator[Pair]:
    """Yields the source and the target cell of every row, given as a mapping; ``name`` is for messages.

    Raises:
        ConfigError: a column does not exist.
        CorpusError: a cell is no text, or too long.
    """
    places = ((f"{name}, row {number}", row) for number, row in enumerate(rows, start=1))
    return _checked((where, (_cell(where, row, columns[0]), _cell(where, row, columns[1]))) for where, row in places)


def _checked(rows: Iterable[tuple[str, Pair]]) -> Iterator[Pair]:
    for where, cells in rows:
        try:
            longest = max(len(cell.encode()) for cell in cells)
        except UnicodeEncodeError as error:
            raise CorpusError(f"{where} has a lone surrogate ({error.reason}), which is no text; mend it") from error
        if longest > MAX_LINE_BYTES:
            raise CorpusError(f"{where} has a cell of over {MAX_LINE_BYTES} bytes; expected one sentence, split it")
        yield cells


def _separated(delimiter: str) -> Callable[[Path, tuple[Column, Column]], Iterator[tuple[str, Pair]]]:
    """A reader of TSV, where a quotation mark is a character, or of CSV, where it encloses cells."""

    def read(path: Path, columns: tuple[Column, Column]) -> Iterator[tuple[str, Pair]]:
        quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        reader = csv.reader(
            (f"{line}\n" for line in read_lines(path)), delimiter=delimiter, quoting=quoting, strict=True
        )
        indices: list[int] = []
        width = 0
        try:
            for cells in reader:
                if not width:
                    width = len(cells)
                    indices = [_index(path, cells, column) for column in columns]
                    if not all(isinstance(column, int) for column in columns):
                        continue
                if len(cells) != width:
                    raise CorpusError(
                        f"{path}:{reader.line_num} has {len(cells)} cells, expected {width} as in the first row; mend "
                        "the row"
                    )
                yield f"{path}:{reader.line_num}", (cells[indices[0]], cells[indices[1]])
        except csv.Error as error:
            raise CorpusError(f"{path}:{reader.line_num} is no row of a table ({error}); mend the row") from error

    return read


def _index(path: Path, cells: list[str], column: Column) -> int:
    if isinstance(column, str):
        return cells.index(_existing(str(path), cells, column))
    if not 1 <= column <= len(cells):
        raise ConfigError(f"{path} has no column {column}, found {len(cells)} columns; columns count from 1")
    return column - 1


def _existing(where: str, names: Collection[str], column: str) -> str:
    if column not in names:
        near = difflib.get_close_matches(column, names, n=1, cutoff=0.4)
        raise ConfigError(
            f"{where} has no column {column!r}, found {', '.join(map(repr, names))}"
            + (f"; did you mean {near[0]!r}?" if near else "; set data.src and data.tgt to two of these")
        )
    return column


def _cell(where: str, row: Any, column: Column) -> str:
    """The text of a column, of a nested one by a name with dots; null is no text."""
    for part in str(column).split("."):
        if not isinstance(row, Mapping):
            raise CorpusError(f"{where} is {row!r:.60}, expected names and values, among them {column!r}; mend the row")
        row = row[_existing(where, [*row], part)]
    if not isinstance(row, str | None):
        raise CorpusError(f"{where} has {row!r:.60} as {column!r}, expected text; choose columns of text")
    return row or ""


def _json_lines(path: Path, columns: tuple[Column, Column]) -> Iterator[tuple[str, Pair]]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{where} is not JSON ({error}); expected an object on each line, mend it") from error
        yield where, (_cell(where, row, columns[0]), _cell(where, row, columns[1]))


def _parquet(path: Path, columns: tuple[Column, Column]) -> Iterator[tuple[str, Pair]]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(f"{path} needs pyarrow; run: pip install 'softsearch[table]'") from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            tops = [str(column).partition(".")[0] for column in columns]
            for top in tops:
                _existing(str(path), file.schema_arrow.names, top)
            for batch in file.iter_batches(batch_size=1024, columns=tops):
                for number, row in enumerate(batch.to_pylist(), start=number + 1):  # noqa: B020  # counts on
                    where = f"{path}, row {number}"
                    yield where, (_cell(where, row, columns[0]), _cell(where, row, columns[1]))
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} is no whole Parquet file ({str(error).strip():.200}); write it again") from error


def _tmx(path: Path, columns: tuple[Column, Column]) -> Iterator[tuple[str, Pair]]:
    """A translation unit is a row, and its languages are columns; ``en`` is also that of ``en-US``."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    found: dict[str, str] = {}
    rows, body = 0, None
    try:
        with open_text(path) as stream:
            bounded = _Bounded(stream, path)
            for event, element in iterparse(bounded, events=("start", "end")):  # refuses entities; loads no DTD
                if event == "start":
                    body = element if element.tag == "body" else body
                if event == "start" or element.tag != "tu":
                    continue
                bounded.left = _MAX_UNIT_BYTES
                row: dict[str, str] = {}
                for variant in element.iter("tuv"):
                    language = (variant.get(_XML_LANGUAGE) or variant.get("lang") or "").lower()
                    segment = variant.find("seg")
                    row.setdefault(language, "" if segment is None else _text_of(segment))
                if body is not None:
                    body.clear()
                found |= row
                cells = [_of_language(row, str(column)) for column in columns]
                if None not in cells:
                    rows += 1
                    yield f"{path}, unit {rows}", (cells[0] or "", cells[1] or "")
    except (ParseError, DefusedXmlException, RecursionError) as error:  # the last of deep segments
        raise CorpusError(f"{path} is no TMX ({error}); expected XML without entities, export it again") from error
    for column in columns if not rows else ():
        if _of_language(found, str(column)) is None:
            _existing(str(path), found, str(column))


class _Bounded:
    """A stream of which only so much is read before a unit ends, so that memory stays bounded."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path, self.left = stream, path, _MAX_UNIT_BYTES

    def read(self, size: int = -1) -> bytes:
        """Reads on."""
        data: bytes = self._stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise CorpusError(f"{self._path} has {_MAX_UNIT_BYTES} bytes without the end of a unit; is it a TMX?")
        return data


def _text_of(segment: Element) -> str:
    """The text of a segment; codes of other formats in it (bpt, ept, it, ph, ut) are none."""
    inner = ("" if part.tag in _CODES else _text_of(part) for part in segment)
    tails = (part.tail or "" for part in segment)
    return (segment.text or "") + "".join(f"{text}{tail}" for text, tail in zip(inner, tails, strict=True))


def _of_language(row: Mapping[str, str], language: str) -> str | None:
    language = language.lower()
    return next((text for code, text in row.items() if code == language or code.startswith(f"{language}-")), None)


_READERS: dict[str, Callable[[Path, tuple[Column, Column]], Iterator[tuple[str, Pair]]]] = {
    ".tsv": _separated("\t"),
    ".csv": _separated(","),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
    ".tmx": _tmx,
}
