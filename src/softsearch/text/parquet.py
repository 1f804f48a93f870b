"""Columns of text in Parquet files, by name; names of nested ones have dots (``translation.en``)."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError, CorpusError
from softsearch.files import open_file

_TEXT = ("string", "large_string", "string_view", "null")
_BUFFER = 1 << 20  # bytes of a column that are read at once, instead of its whole row group
_MAX_LISTED, _MAX_COMPARED = 5, 10_000  # column names in a message, and names compared to find similar ones


def existing_column(where: str, names: Collection[str], column: str, advice: str) -> str:
    """Returns ``column`` if it is one of the names.

    Raises:
        ConfigError: it is not; the message has similar names, or else ``advice``.
    """
    if not names:
        raise ConfigError(f"{where} has nothing by name, expected {column!r:.60}; check that it is the right file")
    if column not in names:
        from softsearch.suggestions import similar  # only a mistake needs it

        listed = similar(column, [*names][:_MAX_COMPARED], _MAX_LISTED)
        is_near = bool(listed)
        listed = [*dict.fromkeys([*listed, *islice(names, _MAX_LISTED)])][:_MAX_LISTED]
        rest = f" and {len(names) - len(listed):,} more" if len(names) > len(listed) else ""
        raise ConfigError(
            f"{where} has no column {column!r:.60}, found {', '.join(f'{name!r:.60}' for name in listed)}{rest}; "
            + (f"did you mean {listed[0]!r:.60}?" if is_near else advice)
        )
    return column


def outermost(column: str, names: Collection[str]) -> tuple[str, str]:
    """Splits a nested column's name after its longest prefix in ``names``, because names may contain dots."""
    head, rest = column, ""
    while head not in names and "." in head:
        head, _, last = head.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return (head, rest) if head in names else (column.partition(".")[0], column.partition(".")[2])


def open_parquet(path: Path, dictionaries: Sequence[str] = ()) -> Any:
    """Opens a Parquet file as a ``pyarrow.parquet.ParquetFile``, whose columns may be read as dictionaries.

    Raises:
        ConfigError: pyarrow is missing.
        CorpusError: the file is none.
    """
    from softsearch.text.file_kinds import other_kind

    with parquet_errors(path):
        from pyarrow import parquet

        with open_file(path) as file:
            head = file.read(512)
        if not head.startswith(b"PAR1") and (found := other_kind(head)):
            raise CorpusError(f"{path} is {found}")
        return parquet.ParquetFile(path, read_dictionary=dictionaries, pre_buffer=False, buffer_size=_BUFFER)


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turns errors of reading a Parquet file into ones that name it.

    Raises:
        ConfigError: pyarrow is missing.
        CorpusError: the file is damaged, or the system does not read it.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        from softsearch.process import how_to_install

        raise ConfigError(f"{path} needs pyarrow: {how_to_install('table')}") from error
    try:
        yield
    except FileNotFoundError as error:
        raise CorpusError(f"{path} does not exist; expected a Parquet file, check the path") from error
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} is not a whole Parquet file ({str(error).strip():.200}); write it again") from error


def is_text(kind: Any) -> bool:
    """Tells whether a type of Arrow is text, or null."""
    kind = getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
    return str(kind) in _TEXT


def text_names(path: Path, fields: Sequence[Any], column: str, advice: str) -> list[str]:
    """Returns a column's names, outermost first if it is nested.

    Raises:
        ConfigError: there is no such column; ``advice`` is as in ``existing_column``.
        CorpusError: it is not unique, or not text.
    """
    names: list[str] = []
    kind, rest = None, column
    while rest:
        own = [field.name for field in fields]
        name, rest = outermost(rest, own)
        names.append(existing_column(str(path), own, name, advice))
        if own.count(name) > 1:
            raise CorpusError(f"{path} has {own.count(name)} columns {name!r:.60}; write it again with one")
        kind = fields[own.index(name)].type
        fields = list(kind) if str(kind).startswith("struct") else []
    if not is_text(kind):
        raise CorpusError(f"{path} has {kind!s:.60} as {column!r:.60}, expected text; choose text columns")
    return names


def column_of(batch: Any, names: Sequence[str]) -> Any:
    """Returns the array of the column with these names, outermost first, of a batch of rows."""
    from pyarrow import compute

    return reduce(compute.struct_field, names[1:], batch.column(names[0]))
