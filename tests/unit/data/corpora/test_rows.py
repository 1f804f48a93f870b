"""Rows of tables: every kind gives the same pairs, and damaged ones end in one line that says where."""

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch.data.corpora.rows import read_rows
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES
from tests.support.rows import declared, rows, units

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


SPREADSHEETS = {  # name, text, columns, rows
    "semicolons": ("x.csv", "\ufeffen;de\r\na man;ein Mann\r\n", ("en", "de"), [("a man", "ein Mann")]),
    "commas inside": ("x.csv", "en;de\na, b;c, d\ne;f\n", ("en", "de"), [("a, b", "c, d"), ("e", "f")]),
    "numbers": ("x.csv", 'a, b;c\n"e;f";g\nh;"i, j, k"\n', (1, 2), [("a, b", "c"), ("e;f", "g"), ("h", "i, j, k")]),
    "tabs": ("x.csv", "en\tde\na, b\tc\n", ("en", "de"), [("a, b", "c")]),
    "bars": ("x.csv", "en|de\na|b\n", ("en", "de"), [("a", "b")]),
    "declared": ("x.csv", "sep=;\n1;2,5;3\n4;5;6\n", (1, 2), [("1", "2,5"), ("4", "5")]),
    "commas with semicolons inside": ("x.csv", "en,de\na;b,c\nd;e,f\n", ("en", "de"), [("a;b", "c"), ("d;e", "f")]),
    "semicolons in TSV": ("x.tsv", "en;de\na;b\n", ("en", "de"), [("a", "b")]),
    "quotes in TSV": ("x.tsv", 'en\tde\n"say ""a"""\t"b, c"\nd\te\n', ("en", "de"), [('say "a"', "b, c"), ("d", "e")]),
    "commas in TSV": (
        "x.tsv",
        'a\tb\n"Smith, John"\t"Schmidt, J."\n',
        (1, 2),
        [("a", "b"), ("Smith, John", "Schmidt, J.")],
    ),
    "a tab inside a cell of TSV": (
        "x.tsv",
        'a\t"b ""c"""\n"d, ""e""\tf"\tg\n',
        (1, 2),
        [("a", 'b "c"'), ('d, "e"\tf', "g")],
    ),
    "speech in TSV": ("x.tsv", '"Hello, you"\t"Hallo"\n"a\tb"\n', (1, 2), [('"Hello, you"', '"Hallo"'), ('"a', 'b"')]),
    "speech with commas in TSV": ("x.tsv", '"Hello, you"\tHallo, du\n', (1, 2), [('"Hello, you"', "Hallo, du")]),
}


@pytest.mark.parametrize("case", SPREADSHEETS)
def test_tables_as_spreadsheets_save_them(tmp_path: Path, case: str) -> None:
    name, text, columns, expected = SPREADSHEETS[case]
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert rows(tmp_path / name, *columns) == expected


def test_a_separator_that_is_unclear_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a;b|c\n1;2|3\n")
    with pytest.raises(ConfigError, match=r"may have any of ';', '\|' between cells; set data\.separator"):
        rows(path, 1, 2)
    assert list(read_rows(path, "x.csv", (1, 2), separator="|")) == [("a;b", "c"), ("1;2", "3")]
    with pytest.raises(ConfigError, match="has no column 'fr', found 'a;b', 'c'"):
        list(read_rows(path, "x.csv", ("fr", "c"), separator="|"))


def test_a_table_without_anything_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.tmx").write_text("<tmx><body/></tmx>")
    (tmp_path / "x.jsonl").write_text("{}\n")
    for name in ("x.tmx", "x.jsonl"):
        with pytest.raises(ConfigError, match="has nothing by name, expected 'en'; check that it is the right file"):
            rows(tmp_path / name)


@pytest.mark.parametrize(
    "error", [ValueError("odd"), RuntimeError(), type("PanicException", (BaseException,), {})("lost")]
)
def test_whatever_a_parser_raises_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("softsearch.data.corpora.rows.read_units", fail)
    with pytest.raises(
        CorpusError, match=rf"x\.tmx cannot be read \({type(error).__name__}.*\); write the table again"
    ):
        rows(units(tmp_path / "x.tmx", {"en": "a", "de": "b"}))


def test_a_table_may_be_left_before_its_end(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        table = read_rows(tmp_path / name, name, ("en", "de"))
        assert next(table) == PAIRS[0]
        table.close()  # type: ignore[attr-defined]  # a generator


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    some = [{"en": "a", "de": "b"}, {"en": "a"}, {"fr": "c"}, {"en": "c", "de": "d"}, {"de": "b"}, {"en": ""}]
    units(tmp_path / "x.tmx", *some)
    left_out = Counter[str]()
    assert list(read_rows(tmp_path / "x.tmx", "x.tmx", ("en", "de"), left_out)) == [("a", "b"), ("c", "d")]
    assert left_out == {"units without de": 2, "units without en and de": 1, "units without en": 1}


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl"])
def test_blank_lines_are_left_out_and_counted(tmp_path: Path, name: str) -> None:
    lines = TEXTS[name].splitlines()
    (tmp_path / name).write_text("\n".join([*lines[:2], "", *lines[2:], "  ", ""]) + "\n")
    left_out = Counter[str]()
    assert list(read_rows(tmp_path / name, name, ("en", "de"), left_out)) == PAIRS
    assert left_out == {"blank lines": 3}


def test_columns_of_flattened_tables(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("id\ttranslation.en\ttranslation.de\n1\ta\tb\n")
    (tmp_path / "x.jsonl").write_text('{"translation.en": "a", "translation.de": "b"}\n')
    parquet.write_table(pa.table({"translation.en": ["a"], "translation.de": ["b"]}), tmp_path / "x.parquet")
    for name in ("x.tsv", "x.jsonl", "x.parquet"):
        assert rows(tmp_path / name, "translation.en", "translation.de") == [("a", "b")]
    (tmp_path / "y.jsonl").write_text('{"data": {"text.en": "a", "text": {"de": "b"}}}\n')
    assert rows(tmp_path / "y.jsonl", "data.text.en", "data.text.de") == [("a", "b")]


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_a_cell_may_be_as_long_as_a_line(tmp_path: Path, name: str) -> None:
    delimiter = "\t" if name == "x.tsv" else ","
    (tmp_path / name).write_text(f"en{delimiter}de\n{'a' * (MAX_LINE_BYTES - 2)}{delimiter}b\n")
    assert len(rows(tmp_path / name)[0][0]) == MAX_LINE_BYTES - 2


def test_a_missing_column_names_the_nearest_of_many(tmp_path: Path) -> None:
    names = [f"column{number}" for number in range(200_000)]
    (tmp_path / "x.jsonl").write_text(json.dumps(dict.fromkeys([*names[:9000], "eng"], "a")))
    (tmp_path / "x.tsv").write_text("\t".join(names[:50_000]) + "\n")
    tuvs = "".join(f'<tuv xml:lang="l{name}"><seg/></tuv>' for name in names)
    (tmp_path / "x.tmx").write_text(f"<tmx><body><tu>{tuvs}</tu></body></tmx>")
    parquet.write_table(pa.table({name: ["a"] for name in names[:5000]}), tmp_path / "x.parquet")
    for name in ("x.jsonl", "x.tsv", "x.tmx", "x.parquet"):
        with pytest.raises(ConfigError, match=r"no column 'en', found .* more") as caught:
            rows(tmp_path / name)
        assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError, match="did you mean 'eng'"):
        rows(tmp_path / "x.jsonl")


def written(folder: Path, **columns: pa.Array) -> Path:
    parquet.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


def test_parquet_that_is_not_text(tmp_path: Path) -> None:
    invalid = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    with pytest.raises(CorpusError, match=r"x.parquet, row 1 is not UTF-8"):
        rows(written(tmp_path, en=invalid, de=pa.array(["a"])))
    with pytest.raises(CorpusError, match=r"has duration\[ns\] as 'en', expected text"):
        rows(written(tmp_path, en=pa.array([1], pa.duration("ns")), de=pa.array(["a"])))
    twice = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["en", "en"])
    with pytest.raises(CorpusError, match="has 2 columns 'en'"):
        rows(written(tmp_path, t=twice), "t.en", "t.en")
    # A column beside those of text may be anything.
    others = pa.StructArray.from_arrays([pa.array(["a"]), pa.array([1], pa.duration("ns"))], ["en", "time"])
    assert rows(written(tmp_path, t=others, de=pa.array(["b"])), "t.en", "de") == [("a", "b")]


def test_a_text_that_a_parquet_file_has_once_is_in_memory_once(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1024, pa.int32()), pa.array(["a" * MAX_LINE_BYTES]))
    path = written(tmp_path, en=long, de=pa.array(["b"] * 1024))
    assert path.stat().st_size < 100_000 + MAX_LINE_BYTES
    before = pa.total_allocated_bytes()
    for number, _ in enumerate(read_rows(path, path.name, ("en", "de"))):
        assert pa.total_allocated_bytes() - before < 20 << 20, number


WRONG = [
    ("x.tsv", b"id\teng\tde\n", ConfigError, "no column 'en', found 'eng', 'id', 'de'; did you mean 'eng'"),
    ("x.csv", b"en,de\na\n", CorpusError, "x.csv:2 has 1 cells, expected 2"),
    ("x.csv", b'en,de\n"a,b\n', CorpusError, "x.csv:2 is not a row"),
    ("x.csv", b"en,de\n\xff,b\n", CorpusError, "x.csv:2:1 is not UTF-8"),
    ("x.csv.gz", b"\x1f\x8bgarbage", CorpusError, "truncated or damaged"),
    ("x.jsonl", b'{"en":"a","de":"b"}\n{"en"\n', CorpusError, "x.jsonl:2 is not JSON"),
    ("x.jsonl", b"[" * 100_000, CorpusError, "x.jsonl:1 is not JSON"),
    ("x.jsonl", b'["a"]\n', CorpusError, "x.jsonl:1 is "),
    ("x.jsonl", b'{"en":1,"de":"b"}\n', CorpusError, "x.jsonl:1 has 1 as 'en', expected text"),
    ("x.jsonl", b'{"en":"\\ud800","de":"b"}\n', CorpusError, "x.jsonl:1 has a lone surrogate"),
    ("x.parquet", b"garbage", CorpusError, "is not a whole Parquet file"),
    ("x.tmx", b"<tmx><body>", CorpusError, "is not TMX"),
    ("x.tmx", b'<!DOCTYPE t [<!ENTITY a "x">]><tmx>&a;</tmx>', CorpusError, "is not TMX .Entit"),
    (
        "x.tmx",
        TMX.replace("DE", "nl").replace('"de"', '"nl"').encode(),
        ConfigError,
        "no column 'de', found 'en-us', 'nl', 'fr', 'en'; set",
    ),
    ("x.tmx.gz", gzip.compress(b"<tmx><body><tu>" + b" " * (65 << 20)), CorpusError, "without the end of a unit"),
    ("x.tmx.gz", gzip.compress(b"<tmx><!--" + b"a" * (70 << 20)), CorpusError, "a tag or a comment of over 2,097,152"),
    ("x.tmx.gz", gzip.compress(b"<tmx><?a " + b"a" * (70 << 20)), CorpusError, "a tag or a comment of over 2,097,152"),
    ("x.tmx.gz", gzip.compress(b"<tmx><" + b"a" * (70 << 20)), CorpusError, "a tag or a comment of over 2,097,152"),
    ("x.tmx", b"<a>" * 2000, CorpusError, "over 1000 elements inside one another"),
    (
        "x.tmx",
        declared("utf-7", "+AGE-"),
        CorpusError,
        "has the encoding 'utf-7' in its first line, which is not a text encoding",
    ),
    ("x.tmx", declared("zip", ""), CorpusError, "has the encoding 'zip'"),
    ("x.tmx", declared("rot13", ""), CorpusError, "has the encoding 'rot13'"),
    ("x.tmx", declared("idna", ""), CorpusError, "has the encoding 'idna'"),
    ("x.tmx", declared("none-such", ""), CorpusError, "has the encoding 'none-such'"),
    ("x.tmx", declared("euc-jp", "") + b"\xff", CorpusError, "is not euc_jp throughout .byte 0xff"),
    ("x.tmx", b'<!DOCTYPE tmx SYSTEM "a.dtd"><tmx>&nbsp;</tmx>', CorpusError, "is not TMX .Entity 'nbsp'"),
    ("x.tsv", b"en\tde\ra\tb\rc\td\r", CorpusError, "x.tsv has lines that end with CR alone"),
    ("x.parquet", b"version https://git-lfs.github.com/spec/v1\n", CorpusError, "x.parquet is a Git LFS pointer"),
    ("x.xlsx", b"a\n", ConfigError, "has no table suffix"),
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
    with pytest.raises(ConfigError, match="has named columns"):
        rows(tmp_path / "x.jsonl", 1, 2)


def test_an_over_long_cell(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"en": ["a" * (1 << 21)], "de": ["b"]}), tmp_path / "x.parquet")
    with pytest.raises(CorpusError, match=r"row 1 has a cell of over"):
        rows(tmp_path / "x.parquet")
