"""Rows of tables: every kind gives the same pairs, and damaged ones end in one line that says where."""

import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch.data.corpora.rows import Column, read_rows
from softsearch.errors import ConfigError, CorpusError

PAIRS = [("a man", 'ein "Mann'), ("two, three", "zwei")]
TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en-US"><seg>a <bpt i="1">&lt;b&gt;</bpt><hi>man</hi></seg></tuv>
<tuv xml:lang="DE"><seg>ein "Mann</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>deux</seg></tuv></tu>
<tu><tuv lang="en"><seg>two, three</seg></tuv><tuv lang="de"><seg>zwei</seg></tuv></tu></body></tmx>"""
TEXTS = {
    "x.tsv": 'id\ten\tde\n1\ta man\tein "Mann\n2\ttwo, three\tzwei\n',
    "x.csv": 'en,de\na man,"ein ""Mann"\n"two, three",zwei\n',
    "x.jsonl": '{"en": "a man", "de": "ein \\"Mann"}\n{"de": "zwei", "en": "two, three"}\n',
    "x.tmx": TMX,
}


def rows(path: Path, src: Column = "en", tgt: Column = "de") -> list[tuple[str, str]]:
    return list(read_rows(path, path.name, (src, tgt)))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_kinds_of_text(tmp_path: Path, name: str, suffix: str, pack: type[bytes]) -> None:
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(pack(TEXTS[name].encode()))
    assert rows(path) == PAIRS


def test_parquet_with_nested_columns_and_null(tmp_path: Path) -> None:
    cells = [{"en": "a man", "de": 'ein "Mann'}, {"en": "two, three", "de": None}]
    parquet.write_table(pa.table({"translation": cells}), tmp_path / "x.parquet")
    assert rows(tmp_path / "x.parquet", "translation.en", "translation.de") == [PAIRS[0], ("two, three", "")]


def test_columns_by_number_have_no_header(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\tc\nd\te\tf\n")
    assert rows(tmp_path / "x.tsv", 3, 1) == [("c", "a"), ("f", "d")]


WRONG = [
    ("x.tsv", b"id\teng\tde\n", ConfigError, "no column 'en', found 'id', 'eng', 'de'; did you mean 'eng'"),
    ("x.csv", b"en,de\na\n", CorpusError, "x.csv:2 has 1 cells, expected 2"),
    ("x.csv", b'en,de\n"a,b\n', CorpusError, "x.csv:2 is no row"),
    ("x.csv", b"en,de\n\xff,b\n", CorpusError, "x.csv:2:1 is not UTF-8"),
    ("x.csv.gz", b"\x1f\x8bgarbage", CorpusError, "truncated or damaged"),
    ("x.jsonl", b'{"en":"a","de":"b"}\n{"en"\n', CorpusError, "x.jsonl:2 is not JSON"),
    ("x.jsonl", b"[" * 100_000, CorpusError, "x.jsonl:1 is not JSON"),
    ("x.jsonl", b'["a"]\n', CorpusError, "x.jsonl:1 is "),
    ("x.jsonl", b'{"en":1,"de":"b"}\n', CorpusError, "x.jsonl:1 has 1 as 'en', expected text"),
    ("x.jsonl", b'{"en":"\\ud800","de":"b"}\n', CorpusError, "x.jsonl:1 has a lone surrogate"),
    ("x.parquet", b"garbage", CorpusError, "is no whole Parquet file"),
    ("x.tmx", b"<tmx><body>", CorpusError, "is no TMX"),
    ("x.tmx", b'<!DOCTYPE t [<!ENTITY a "x">]><tmx>&a;</tmx>', CorpusError, "is no TMX .Entit"),
    ("x.tmx", TMX.replace("DE", "nl").replace('"de"', '"nl"').encode(), ConfigError, "no column 'de', found 'en-us'"),
    ("x.tmx.gz", gzip.compress(b"<tmx><body><tu>" + b" " * (65 << 20)), CorpusError, "without the end of a unit"),
    ("x.xlsx", b"", ConfigError, "is no table by its name"),
]


@pytest.mark.parametrize(("name", "content", "error", "message"), WRONG)
def test_damaged_tables(tmp_path: Path, name: str, content: bytes, error: type[Exception], message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        rows(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_wrong_numbers_of_columns(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n")
    with pytest.raises(ConfigError, match="no column 3, found 2 columns"):
        rows(tmp_path / "x.tsv", 1, 3)
    with pytest.raises(ConfigError, match="has columns by name"):
        rows(tmp_path / "x.jsonl", 1, 2)


def test_an_over_long_cell(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"en": ["a" * (1 << 21)], "de": ["b"]}), tmp_path / "x.parquet")
    with pytest.raises(CorpusError, match=r"row 1 has a cell of over"):
        rows(tmp_path / "x.parquet")
