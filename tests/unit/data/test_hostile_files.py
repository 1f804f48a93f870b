"""Damaged and hostile tables, tokenizers and vocabularies: one line that names the file, and nothing is written."""

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch.data.corpora.table import Table
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import SoftsearchError
from softsearch.text.tokenizer import TokenizerTrainer, train_tokenizer

ROWS = b"en\tde\n" + b"a man\tein Mann\n" * 99
DOCTYPE = b"<!DOCTYPE tmx [<!ENTITY "
HEAD = b'<tmx><body><tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="en"><seg>'
LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 9) for n in range(1, 9))
END = b"</seg></tuv></tu></body></tmx>"
LONG = b"a" * (2 << 20)


def table_file() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"en": ["a man"] * 99, "de": ["ein Mann"] * 99}), sink)
    return sink.getvalue()


def zipped() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("../x.tsv", ROWS)
    return sink.getvalue()


TABLES = {
    "cut.tsv.gz": gzip.compress(ROWS)[:-9],
    "cut.tsv.xz": lzma.compress(ROWS)[:-9],
    "cut.tsv.bz2": bz2.compress(ROWS)[:-9],
    "cut.tsv.zst": pa.compress(ROWS, codec="zstd", asbytes=True)[:-9],
    "zip.tsv.gz": zipped(),
    "nul.tsv": b"\0" * 99,
    "long.tsv": ROWS + LONG + b"\tb\n",
    "open.csv": b'en,de\n"' + b"a\n" * (1 << 18),
    "long.csv": b"en,de\n" + LONG + b",b\n",
    "cut.jsonl": b'{"en": "a", "de": "b"}\n{"en": "a"',
    "deep.jsonl": b'{"en": "a", "de": ' + b'{"a":' * 100_000,
    "list.jsonl": b'{"en": ["a"], "de": "b"}\n',
    "nul.jsonl": b"\0\n",
    "cut.parquet": table_file()[:-20],
    "head.parquet": table_file()[:4] + b"\xff" * 999 + table_file()[-8:],
    "zip.parquet": zipped(),
    "cut.tmx": HEAD + b"a",
    "laughs.tmx": DOCTYPE + b'l0 "ha">' + LAUGHS + b"]>" + HEAD + b"&l8;" + END,
    "outside.tmx": DOCTYPE + b'x SYSTEM "file:///etc/hostname">]>' + HEAD + b"&x;" + END,
    "deep.tmx": HEAD + b"<hi>" * 50_000 + b"</hi>" * 50_000 + END,
    "long.tmx": HEAD + LONG + END,
    "nul.tmx": HEAD + b"\0" + END,
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name])
    with pytest.raises(SoftsearchError, match=name) as caught:
        Table(train=path, val=path, src="en", tgt="de").files(tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert not [found for found in (tmp_path / "cache").glob("table*") if found.is_dir()]


MODEL = train_tokenizer(["a man is running"], kind="bpe", vocab_size=25).model
TOKENIZERS: dict[str, tuple[str, bytes]] = {
    "cut.model": ("model", MODEL[: len(MODEL) // 2 + 3]),
    "nul.model": ("model", b"\0" * 99),
    "empty.model": ("model", b""),
    "packed.model": ("model", gzip.compress(MODEL)),
    "text.model": ("model", b"\n\x0ca man\xff\xff"),
    "twice.model": ("model", MODEL + MODEL),
    "cut.txt": ("vocabulary", gzip.compress(b"a\nb\n")[:-9]),
    "binary.txt": ("vocabulary", MODEL + b"\xff"),
    "long.txt": ("vocabulary", LONG),
    "empty.txt": ("vocabulary", b""),
    "specials.txt": ("vocabulary", b"<unk>\n<s>\n"),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(tmp_path: Path, name: str) -> None:
    option, content = TOKENIZERS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SoftsearchError) as caught:
        from_files(TokenizerTrainer(kind="word", **{option: tmp_path / name})).train([], [])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert [path.name for path in tmp_path.iterdir()] == [name]
