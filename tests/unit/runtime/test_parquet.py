"""Parquet files that are translated: rows and other columns stay, and what is not whole has no name."""

import io
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from softsearch.runtime import parquet as tables
from softsearch.runtime.cli import main
from softsearch.runtime.translator import Translator
from tests.support.bundles import make_bundle

LINES = ["one two", "ten", None, "", "a cat sat", "one\ntwo"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that was trained from English to German."""
    languages = {"config": {"data": {"src_lang": "en", "tgt_lang": "de"}}}
    return make_bundle(tmp_path_factory.mktemp("exports") / "small", training=languages).path


@pytest.fixture
def run(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Translates a table, in.parquet, to out.parquet with options; returns what was said."""

    def run(table: pa.Table, *options: object, code: int = 0, **written: Any) -> str:
        parquet.write_table(table, tmp_path / "in.parquet", **written)
        files = ["--input", tmp_path / "in.parquet", "--output", tmp_path / "out.parquet"]
        assert main(["translate", *map(str, (bundle, *files, *options))]) == code
        return capsys.readouterr().err

    return run


def expected(bundle: Path, lines: list[str | None]) -> list[str | None]:
    found = Translator(bundle, threads=1).translate([line or "" for line in lines])
    return [None if line is None else each.text for line, each in zip(lines, found, strict=True)]


def test_rows_and_other_columns_stay_and_null_stays_null(run: Any, bundle: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": range(6),
            "en": LINES,
            "note": ["x", None, "y", "", "z", "x"],
            "kind": pa.array(["a", "b", None, "a", "b", "a"]).dictionary_encode(),
            "days": [[date(2026, 1, 1)], [], None, [], [], []],
            "user": [{"name": "A", "age": 1}, None, {"name": None, "age": 2}, None, None, None],
        }
    ).replace_schema_metadata({"mine": "kept"})
    assert run(table, row_group_size=4) == ""
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == [*table.column_names, "de"]
    others = found.drop_columns("de")
    assert others.schema.equals(parquet.read_schema(tmp_path / "in.parquet"), check_metadata=True)
    assert others.schema.metadata == {b"mine": b"kept"}
    assert others.to_pylist() == table.to_pylist()
    assert found["de"].to_pylist() == expected(bundle, LINES)
    assert found["de"].to_pylist()[2:4] == [None, ""]
    assert parquet.ParquetFile(tmp_path / "out.parquet").metadata.num_row_groups == 2


@pytest.mark.parametrize(
    ("kind", "nested"), [("large_string", False), ("string_view", False), ("dictionary", False), ("string", True)]
)
def test_columns_of_all_kinds_of_text(run: Any, bundle: Path, tmp_path: Path, kind: str, nested: bool) -> None:
    texts = pa.array(LINES)
    column = texts.dictionary_encode() if kind == "dictionary" else texts.cast(kind)
    parts = pa.StructArray.from_arrays([pa.array(range(6)), column], ["n", "en"])
    table = pa.table({"pair": parts if nested else column})
    run(table, *(["--column", "pair.en"] if nested else []))
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found["de"].to_pylist() == expected(bundle, LINES)
    assert found["pair"].equals(table["pair"])


@given(st.lists(st.one_of(st.none(), st.sampled_from(["one", "ten", "a cat", ""])), max_size=12), st.integers(1, 5))
def test_any_sizes_of_blocks_and_row_groups_give_the_same_rows(
    bundle: Path, tmp_path_factory: pytest.TempPathFactory, lines: list[str | None], size: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    table = pa.table({"id": pa.array(range(len(lines)), pa.int64()), "en": pa.array(lines, pa.string())})
    parquet.write_table(table, folder / "in.parquet", row_group_size=size + 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK_LINES", size)
        patch.setattr(tables, "_ROWS", 3)
        words = ["--input", folder / "in.parquet", "--output", folder / "out.parquet", "--threads", 1]
        assert main(["translate", str(bundle), *map(str, words)]) == 0
    found = parquet.read_table(folder / "out.parquet")
    assert found.drop_columns("de").equals(table)
    assert found["de"].to_pylist() == expected(bundle, lines)


def test_the_progress_line_shows_the_part_of_the_rows(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(tables, "BLOCK_LINES", 2)
    run(pa.table({"en": LINES}))
    assert [text.split(",")[0] for text in terminal.getvalue().split("\r")] == ["", "67%", "100%"]
    assert " left" in terminal.getvalue()


@pytest.mark.day
@pytest.mark.multiprocess
def test_processes_write_the_same_file(run: Any, tmp_path: Path) -> None:
    table = pa.table({"id": range(6 * 600), "en": LINES * 600})
    run(table, "--search", "greedy", row_group_size=1000)
    alone = (tmp_path / "out.parquet").read_bytes()
    run(table, "--search", "greedy", "--processes", 2, row_group_size=1000)
    assert (tmp_path / "out.parquet").read_bytes() == alone


def test_the_compression_stays(run: Any, tmp_path: Path) -> None:
    for codec in ("NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI"):
        run(pa.table({"en": ["one"]}), compression=codec)
        columns = parquet.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
        assert {columns.column(at).compression for at in (0, 1)} == {codec.replace("NONE", "UNCOMPRESSED")}


def test_columns_are_found_by_language_or_alone_and_can_be_named(run: Any, tmp_path: Path) -> None:
    def columns() -> list[str]:
        return parquet.read_schema(tmp_path / "out.parquet").names

    run(pa.table({"en": ["one"], "fr": ["un"]}))
    assert columns() == ["en", "fr", "de"]
    run(pa.table({"n": [1], "text": ["one"]}), "--new-column", "mt")
    assert columns() == ["n", "text", "mt"]
    run(pa.table({"de": ["eins"], "x": ["one"]}), "--column", "x", "--new-column", "mt")
    assert columns() == ["de", "x", "mt"]
    (tmp_path / "out.parquet").unlink()
    two = pa.table({"a": ["one"], "b": ["two"], "n": [1]})
    assert "has the columns 'a' (string), 'b' (string), 'n' (int64), expected one named 'en'" in run(two, code=2)
    assert "no column 'c', found 'a', 'b', 'n'; name one of these by --column" in run(two, "--column", "c", code=2)
    assert "has int64 as 'n', expected text" in run(two, "--column", "n", code=1)
    assert "has a column 'de' already" in run(pa.table({"en": ["one"], "de": ["eins"]}), code=2)
    assert not (tmp_path / "out.parquet").exists()


def test_a_text_that_is_not_utf8_or_too_long_is_an_error_or_blank(run: Any, bundle: Path, tmp_path: Path) -> None:
    raw = [b"one", b"t\xff", b"ten ten " * 200, b"ten"]
    offsets = [sum(map(len, raw[:at])) for at in range(5)]
    buffers = [pa.py_buffer(b"".join(each.to_bytes(4, "little") for each in offsets)), pa.py_buffer(b"".join(raw))]
    table = pa.table({"en": pa.StringArray.from_buffers(4, *buffers)})
    said = run(table, code=1)
    assert f"{tmp_path / 'in.parquet'}:2:2 is not UTF-8: byte 0xff" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
    said = run(table, "--on-error", "blank")
    assert "2 of 4 lines could not be translated, and are empty in the output: 2, 3" in said
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found["de"].to_pylist() == [*expected(bundle, ["one"]), "", "", *expected(bundle, ["ten"])]
    assert found["en"].equals(table["en"])


def test_records_count_rows(run: Any, tmp_path: Path) -> None:
    run(pa.table({"en": ["one", "ten"]}), "--alignments", tmp_path / "a.jsonl", "--prefix", _prefixes(tmp_path))
    assert [line[:10] for line in (tmp_path / "a.jsonl").read_text().splitlines()] == ['{"line": 1', '{"line": 2']


def _prefixes(folder: Path) -> Path:
    (folder / "prefixes").write_text("\neins\n")
    return folder / "prefixes"


def test_other_files_and_options_are_refused(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, lines, out = tmp_path / "in.parquet", tmp_path / "in.txt", tmp_path / "out.parquet"
    parquet.write_table(pa.table({"en": ["one"]}), table)
    lines.write_text("one\n")
    pair = ["--input", table, "--output", out]
    for words, message in (
        (["--input", table], f"--input {table}: a Parquet file is translated to another one"),
        (["--input", table, "--output", tmp_path / "x.txt"], "a Parquet file is translated to another one"),
        (["--input", lines, "--output", out], "a Parquet file is translated to another one"),
        (["one two", "--output", out], f"--output {out}: a Parquet file is translated to another one"),
        ([*pair, "--n-best", 2], "--n-best is for files of lines"),
        ([*pair, "--resume"], "--resume is for files of lines"),
        (["--input", lines, "--column", "en"], "--column is for Parquet files"),
        (["--input", table, "--output", table], "would overwrite"),
    ):
        assert main(["translate", str(bundle), *map(str, words)]) == 2
        assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "in.txt"]
    table.rename(tmp_path / "x")
    assert main(["translate", str(bundle), "--input", str(tmp_path / "x")]) == 1
    assert "is a Parquet file; give it a name that ends with .parquet" in capsys.readouterr().err


def test_damaged_files_and_a_missing_package(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.parquet"

    def said(code: int = 1) -> str:
        files = ["--input", str(source), "--output", str(tmp_path / "out.parquet")]
        assert main(["translate", str(bundle), *files]) == code
        assert not (tmp_path / "out.parquet").exists()
        return capsys.readouterr().err

    assert "does not exist; expected a Parquet file" in said()
    source.write_bytes(b"one\n")
    assert "is not a whole Parquet file" in said()
    parquet.write_table(
        pa.table({"en": [f"one {n}" for n in range(9)]}), source, row_group_size=3, use_dictionary=False
    )
    middle = parquet.ParquetFile(source).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(source.read_bytes())
    content[middle : middle + 40] = bytes(40)
    source.write_bytes(content)
    assert "is not a whole Parquet file" in said()  # found after rows were written
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "needs pyarrow: " in said(code=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_an_error(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(pa.table({"en": ["one"]}), tmp_path / "in.parquet")
    (tmp_path / "full.parquet").symlink_to("/dev/full")
    files = ["--input", tmp_path / "in.parquet", "--output", tmp_path / "full.parquet"]
    assert main(["translate", str(bundle), *map(str, files)]) == 1
    assert "full.parquet cannot be written (No space left on device)" in capsys.readouterr().err
