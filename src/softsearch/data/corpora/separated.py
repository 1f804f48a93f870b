"""Rows of TSV and CSV files, with the separator and the quotes that programs write."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES, read_lines

Column = str | int
_SAMPLE = 200  # lines at the start
_SEPARATORS = ",;\t|"
_DECLARED = re.compile(r"sep=(.)")  # first line of files for Excel
_CELL = re.compile(r'(?:"((?:[^"]|"")*+)"|([^"\t\n]*+))(?:[\t\n]|\Z)')
_log = logging.getLogger(__name__)


def read_cells(
    path: Path, usual: str, columns: Sequence[Column], separator: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of the last line and the cells of each row; the first row of a file with names is the header.

    Spreadsheets write ``;`` or a tab in CSV where commas are decimal points: without ``separator`` the one is taken
    by which the first row has the columns, or all rows as many cells; if several do, the usual one. A quotation mark
    encloses cells, but is an ordinary character in files with tabs unless all cells with one are enclosed, and those
    cells have a quotation mark or a comma inside.

    Raises:
        ConfigError: several other separators are possible.
        CorpusError: the file cannot be read, or a quoted cell does not end.
    """
    lines = read_lines(path)
    sample, size = list[str](), 0
    for line in islice(lines, _SAMPLE):
        sample.append(line)
        if (size := size + len(line)) > MAX_LINE_BYTES:
            break
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # for the whole process; 131,072 by default
    if declared := _DECLARED.fullmatch(sample[0]):
        separator, skipped, sample = separator or declared[1], 1, sample[1:]
    else:
        skipped = 0
    if separator is None:
        separator = _separator(sample, usual, columns, path)
        if separator != usual:
            _log.info("%s: cells are separated by %r", path, separator)
    reader = _reader(chain(sample, lines), separator, is_quoted=separator != "\t" or _has_quoted_cells(sample))
    try:
        for cells in reader:
            yield reader.line_num + skipped, cells
    except csv.Error as error:
        raise CorpusError(
            f"{path}:{reader.line_num + skipped} is not a row of a table ({error}); fix the row"
        ) from error


def _reader(lines: Iterable[str], separator: str, *, is_quoted: bool, strict: bool = True) -> Any:
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    return csv.reader((f"{line}\n" for line in lines), delimiter=separator, quoting=quoting, strict=strict)


def _separator(sample: Sequence[str], usual: str, columns: Sequence[Column], path: Path) -> str:
    named, even = [], []
    for separator in (usual, *(other for other in _SEPARATORS if other != usual)):
        is_quoted = separator != "\t" or _has_quoted_cells(sample)
        rows = [row for row in _reader(sample, separator, is_quoted=is_quoted, strict=False) if any(row)]
        if rows and all(isinstance(column, str) and column in rows[0] for column in columns):
            named.append(separator)
        widths = {len(row) for row in (rows[:-1] if len(rows) > 2 else rows)}  # the last may go on
        if len(widths) == 1 and max(widths) >= max(2, *(c if isinstance(c, int) else 0 for c in columns)):
            even.append(separator)
    found = named or even or [usual]
    if usual not in found and len(found) > 1:
        raise ConfigError(
            f"{path} may have any of {', '.join(map(repr, found))} between cells; set data.separator to one of them"
        )
    return usual if usual in found else found[0]


def _has_quoted_cells(sample: Sequence[str]) -> bool:
    """Tells whether lines with tabs have quotes as spreadsheets write them, around the cells that need them."""
    text, at, quoted, plain = "\n".join(sample), 0, list[str](), list[str]()
    while at < len(text):
        if (cell := _CELL.match(text, at)) is None:
            return False
        (plain if cell[1] is None else quoted).append(cell[cell.lastindex or 2])
        at = cell.end()
    if all(re.search('[\t\n"]', cell) for cell in quoted):
        return bool(quoted)
    return all(re.search('[\t\n",]', cell) for cell in quoted) and not any("," in cell for cell in plain)
