"""Rows of tables: TSV, CSV, JSON Lines, Parquet and TMX files as pairs of cells, streamed."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softsearch.data.corpora.separated import Column, read_cells
from softsearch.data.corpora.tmx import MAX_LANGUAGES, language_code, read_units
from softsearch.errors import ConfigError, CorpusError, parsing
from softsearch.text.corpus import MAX_LINE_BYTES, PACKED, read_lines
from softsearch.text.parquet import column_of, existing_column, open_parquet, outermost, parquet_errors, text_names

Pair = tuple[str, str]
_PARQUET_ROWS = 1024  # rows read at a time
_SEPARATED = {".tsv": "\t", ".csv": ","}  # the usual separators
_MAX_LISTED = 5  # languages in a message
_ADVICE = "set data.src and data.tgt to two of these"  # if no column has a similar name

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Table:
    """What a reader reads, and where it counts the rows that it leaves out."""

    path: Path
    columns: tuple[Column, Column]
    left_out: Counter[str]


_Reader = Callable[[_Table], Iterator[tuple[str, Pair]]]


def read_rows(
    path: Path,
    name: str,
    columns: tuple[Column, Column],
    left_out: Counter[str] | None = None,
    separator: str | None = None,
) -> Iterator[Pair]:
    """Yields the source and target cells of each row; the suffix of ``name`` gives the kind of table.

    Rows left out are counted in ``left_out`` by reason. ``separator`` is that of CSV and TSV if it is not to be found
    (``read_cells``).

    Raises:
        ConfigError: the kind of table is not supported, a column does not exist, or a library is missing.
        CorpusError: the file is damaged; the message names the row or the line.
    """
    kind = _kind_of(name)
    refuse_no_table(path, name)
    if kind not in _SEPARATED and any(isinstance(column, int) for column in columns):
        raise ConfigError(f"data.src and data.tgt are {columns}, but {name} has named columns; give their names")
    read = _separated(_SEPARATED[kind], separator) if kind in _SEPARATED else _READERS[kind]
    with parsing(path, CorpusError, "write the table again, in UTF-8"):
        yield from _checked(read(_Table(path, columns, Counter() if left_out is None else left_out)))


def refuse_no_table(path: Path, name: str | Path) -> None:
    """Refuses a file whose name has no suffix of a table, as what it is by its first bytes if that is known.

    Raises:
        ConfigError: the name has no such suffix.
        CorpusError: the file is a document, a spreadsheet or the like, or cannot be read.
    """
    if not is_table(name):
        next(read_lines(path))
        raise ConfigError(
            f"{name} has no table suffix, expected one of {', '.join((*_SEPARATED, *_READERS))} (except .parquet also "
            f"with {', '.join(PACKED)}); rename it, or use data=parallel for two files of lines"
        )


def is_table(name: str | Path) -> bool:
    """Returns whether a name has the suffix of a table."""
    return _kind_of(name) in (*_SEPARATED, *_READERS)


def _kind_of(name: str | Path) -> str:
    suffixes = [suffix for suffix in Path(name).suffixes if suffix not in PACKED]
    return suffixes[-1].lower() if suffixes else ""


def read_mappings(rows: Iterable[Mapping[str, Any]], name: str, columns: tuple[Column, Column]) -> Iterator[Pair]:
    """Yields the source and target cells of each row, given as a mapping; ``name`` is for messages.

    Raises:
        ConfigError: a column does not exist.
        CorpusError: a cell is not text, or too long.
    """
    places = ((f"{name}, row {number}", row) for number, row in enumerate(rows, start=1))
    return _checked((where, (_cell(where, row, columns[0]), _cell(where, row, columns[1]))) for where, row in places)


def _checked(rows: Iterable[tuple[str, Pair]]) -> Iterator[Pair]:
    for where, cells in rows:
        try:
            longest = max(len(cell.encode()) for cell in cells)
        except UnicodeEncodeError as error:
            raise CorpusError(f"{where} has a lone surrogate ({error.reason}), which is not text; fix it") from error
        if longest > MAX_LINE_BYTES:
            raise CorpusError(f"{where} has a cell of over {MAX_LINE_BYTES} bytes; expected one sentence, split it")
        yield cells


def _separated(usual: str, separator: str | None) -> "_Reader":
    """Makes a reader of TSV or CSV."""

    def read(table: _Table) -> Iterator[tuple[str, Pair]]:
        path, columns = table.path, table.columns
        indices: list[int] = []
        width = 0
        for number, cells in read_cells(path, usual, columns, separator):
            if not any(map(str.strip, cells)):
                table.left_out["blank lines"] += 1
                continue
            if not width:
                width = len(cells)
                indices = [_index(path, cells, column) for column in columns]
                if not all(isinstance(column, int) for column in columns):
                    continue
            if len(cells) != width:
                raise CorpusError(
                    f"{path}:{number} has {len(cells)} cells, expected {width}, as in the first row; fix the row"
                )
            yield f"{path}:{number}", (cells[indices[0]], cells[indices[1]])

    return read


def _index(path: Path, cells: list[str], column: Column) -> int:
    if isinstance(column, str):
        return cells.index(existing_column(str(path), cells, column, _ADVICE))
    if not 1 <= column <= len(cells):
        raise ConfigError(f"{path} has no column {column}, found {len(cells)} columns; columns count from 1")
    return column - 1


def _cell(where: str, row: Any, column: Column) -> str:
    """The text in a column; the name of a nested one has dots; null is not text."""
    rest = str(column)
    while rest:
        if not isinstance(row, Mapping):
            raise CorpusError(f"{where} is {row!r:.60}, expected names and values, among them {column!r}; fix the row")
        name, rest = outermost(rest, row.keys())
        row = row[existing_column(where, row.keys(), name, _ADVICE)]
    if not isinstance(row, str | None):
        raise CorpusError(f"{where} has {row!r:.60} as {column!r}, expected text; choose text columns")
    return row or ""


def _json_lines(table: _Table) -> Iterator[tuple[str, Pair]]:
    path, columns = table.path, table.columns
    for number, line in enumerate(read_lines(path, of_json=True), start=1):
        where = f"{path}:{number}"
        if not line.strip():
            table.left_out["blank lines"] += 1
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = str(error).partition("; use ")[0]  # advice for programmers
            raise CorpusError(f"{where} is not JSON ({why}); expected one object per line, fix it") from error
        yield where, (_cell(where, row, columns[0]), _cell(where, row, columns[1]))


def _parquet(table: _Table) -> Iterator[tuple[str, Pair]]:
    path, names = table.path, [str(column) for column in table.columns]
    with open_parquet(path) as file:
        parts = [text_names(path, list(file.schema_arrow), name, _ADVICE) for name in names]
    number = 0
    try:
        with parquet_errors(path), open_parquet(path, names) as file:  # as dictionaries, repeated text is stored once
            for batch in file.iter_batches(_PARQUET_ROWS, columns=names):
                sides = [column_of(batch, own) for own in parts]
                for number, (src, tgt) in enumerate(zip(*sides, strict=True), start=number + 1):  # noqa: B020  # counts on
                    yield f"{path}, row {number}", (src.as_py() or "", tgt.as_py() or "")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}, row {number} is not UTF-8 ({error.reason}); write the table again with text as UTF-8"
        ) from error


def _tmx(table: _Table) -> Iterator[tuple[str, Pair]]:
    """Reads each translation unit as a row, and its languages as columns; ``en`` also matches ``en-US``."""
    path, columns = table.path, table.columns
    found: dict[str, str] = {}
    taken = [Counter[str]() for _ in columns]
    for unit in read_units(path):
        where = f"{path}, unit {unit.number}"
        if len(found) < MAX_LANGUAGES:
            found |= dict.fromkeys(unit.texts, "")
        codes = [_language_in(where, unit.texts, str(column)) for column in columns]
        if all(codes):
            for counts, code in zip(taken, codes, strict=True):
                counts[code] += 1
            yield where, (unit.texts[codes[0]], unit.texts[codes[1]])
        else:
            missing = [str(column) for column, code in zip(columns, codes, strict=True) if not code]
            table.left_out[f"units without {' and '.join(missing)}"] += 1
    for column, counts in zip(columns, taken, strict=True):
        if not counts and not _languages(found, str(column)):
            existing_column(str(path), found, str(column), _ADVICE)
        if len(counts) > 1:
            variants = ", ".join(f"{count:,} in {code:.20}" for code, count in counts.most_common(_MAX_LISTED))
            _log.warning("%s: %s stands for several languages: %s; name one of them", path, column, variants)


def _languages(texts: Iterable[str], language: str) -> list[str]:
    """Returns the code itself if there is a text in it, or else all its variants."""
    code = language_code(language)
    return [code] if code in texts else [own for own in texts if own.startswith(f"{code}-")]


def _language_in(where: str, texts: Mapping[str, str], language: str) -> str:
    """Returns the code of a unit's text in a language, or ""; refuses different texts in its variants."""
    codes = _languages(texts, language)
    if len({texts[code] for code in codes}) > 1:
        raise ConfigError(
            f"{where} has different texts in {' and '.join(f'{code:.20}' for code in codes[:_MAX_LISTED])}, and data "
            f"names {language!r:.20}; set data.src or data.tgt to one of them"
        )
    return codes[0] if codes else ""


_READERS: dict[str, _Reader] = {".jsonl": _json_lines, ".parquet": _parquet, ".tmx": _tmx}
