"""Parquet files that are translated: their rows, with the translations as one more column, go to other ones."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError, CorpusError, InputError
from softsearch.runtime.input_blocks import BLOCK_BYTES, BlankLines, decoded
from softsearch.runtime.output import Output, open_output
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import BLOCK_LINES
from softsearch.text.corpus import StaysOpen
from softsearch.text.parquet import column_of, is_text, open_parquet, parquet_errors, text_names

SUFFIX = ".parquet"
_ROWS = 1 << 16  # that are in memory at once, and in a row group that is written
_ADVICE = "name one of these by --column"
_LISTED = 20  # columns in a message


def has_parquet(*paths: Path | None) -> bool:
    """Tells whether any of the files is one of Parquet, by its name."""
    return any(path is not None and path.suffix.lower() == SUFFIX for path in paths)


class ParquetTable:
    """Rows that are read, and written with their translations.

    Args:
        path: the file, for messages.
        file: the same, open.
        names: those of the column with the text, outermost first if it is nested.
        writer: writes the rows.
    """

    def __init__(self, path: Path, file: Any, names: Sequence[str], writer: Any) -> None:
        self._path, self._file, self._names, self._writer = path, file, names, writer
        self._read = deque[Any]()  # rows whose translations have not all come
        self._texts = list[str]()  # translations of the first of these
        self._rows = 0  # read so far

    def blocks(self, blank: BlankLines) -> Iterator[list[str]]:
        """Yields the texts in blocks, null as "".

        Args:
            blank: gets the rows that cannot be read, which become "".

        Raises:
            InputError: the file is damaged, or a text is too long or not UTF-8.
        """
        for batch in self._batches():
            self._read.append(batch)
            block, size = list[str](), 0
            for raw in _bytes_of(column_of(batch, self._names)):
                self._rows += 1
                block.append(decoded(raw, str(self._path), self._rows, blank))
                size += len(raw)
                if len(block) == BLOCK_LINES or size >= BLOCK_BYTES:
                    yield block
                    block, size = [], 0
            if block:
                yield block

    def _batches(self) -> Iterator[Any]:
        try:
            with parquet_errors(self._path):
                for group in range(self._file.num_row_groups):
                    yield from self._file.iter_batches(_ROWS, row_groups=[group])
        except CorpusError as error:
            raise InputError(str(error)) from error

    def part_read(self) -> float:
        """The part of the rows that has been read, from 0 to 1."""
        return self._rows / max(1, self._file.metadata.num_rows)

    def write(self, translation: Translation, _number: int) -> None:
        """Takes the translation of the next row; raises InputError if rows cannot be written."""
        import pyarrow as pa

        self._texts.append(translation.text)
        if len(self._texts) < len(self._read[0]):
            return
        batch = self._read.popleft()
        mask = column_of(batch, self._names).is_null().to_numpy(zero_copy_only=False)
        column = pa.array(self._texts, pa.string(), mask=mask)
        self._writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, column], schema=self._writer.schema))
        self._texts = []


def _bytes_of(column: Any) -> Iterator[bytes]:
    """Yields the bytes of each text, which need not be UTF-8; none for null."""
    import pyarrow as pa

    kind = str(column.type)
    texts = column.cast(pa.large_string()) if kind == "null" or kind.startswith("dictionary") else column
    for cell in texts:
        buffer = cell.as_buffer()
        yield b"" if buffer is None else buffer.to_pybytes()


@contextmanager
def open_table(
    inputs: Sequence[Path], output: Path | None, languages: tuple[str, str], columns: tuple[str | None, str | None]
) -> Iterator[ParquetTable]:
    """Opens a Parquet file, and another one that appears under its name when all its rows are written.

    Args:
        inputs: the file.
        output: the other one.
        languages: of the text and of its translations, "" if they are not known.
        columns: of the text, by default that of its language, or the only one with text; and of the translations, by
            default that of their language.

    Raises:
        ConfigError: a file is not one of Parquet, a column cannot be found, or pyarrow is missing.
        InputError: a file cannot be read or written.
    """
    if len(inputs) != 1 or output is None or not (has_parquet(inputs[0]) and has_parquet(output)):
        named = [f"--input {path}" for path in inputs] + ([f"--output {output}"] if output else [])
        raise ConfigError(
            f"{' '.join(named)}: a Parquet file is translated to another one; give one --input and one --output that "
            f"end in {SUFFIX}, or files of lines"
        )
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_parquet(inputs[0]))
            schema = file.schema_arrow
            names = _text_column(inputs[0], schema, languages[0], columns[0])
        except CorpusError as error:
            raise InputError(str(error)) from error
        new = _new_column(inputs[0], schema.names, languages[1], columns[1])
        yield stack.enter_context(_writing(inputs[0], file, names, stack.enter_context(open_output(output)), new))


@contextmanager
def _writing(path: Path, file: Any, names: Sequence[str], output: Output, new: str) -> Iterator[ParquetTable]:
    import pyarrow as pa
    from pyarrow import parquet

    schema = file.schema_arrow.append(pa.field(new, pa.string()))
    with parquet.ParquetWriter(StaysOpen(output), schema, compression=_compression(file.metadata)) as writer:
        yield ParquetTable(path, file, names, writer)


def _compression(metadata: Any) -> str:
    """That of the file, by its first column."""
    found = metadata.row_group(0).column(0).compression if metadata.num_row_groups and metadata.num_columns else ""
    return {"UNCOMPRESSED": "NONE", "": "SNAPPY"}.get(found, found)


def _text_column(path: Path, schema: Any, language: str, column: str | None) -> list[str]:
    """The names of the column to translate, outermost first."""
    texts = [field.name for field in schema if is_text(field.type)]
    if column is None and language not in texts and len(texts) != 1:
        every = [f"{field.name!r:.60} ({field.type!s:.60})" for field in schema]
        more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
        wanted = f"one named {language!r:.60}, or only one with text" if language else "only one with text"
        raise ConfigError(
            f"{path} has the columns {', '.join(every[:_LISTED])}{more}, expected {wanted}; name the column by --column"
        )
    return text_names(path, list(schema), column or (language if language in texts else texts[0]), _ADVICE)


def _new_column(path: Path, names: Sequence[str], language: str, column: str | None) -> str:
    """The name of the column of translations."""
    new = column or language or "translation"
    if new in names:
        raise ConfigError(f"{path} has a column {new!r:.60} already; name another one for translations by --new-column")
    return new
