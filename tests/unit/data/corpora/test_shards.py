"""Corpora of many files: both sides are found by wildcards, and belong together by what these stand for."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.shards import shards
from softsearch.data.corpora.table import Table
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.tokenizer import TokenizerTrainer
from tests.support.pairs import write_pair

TRAINER = TokenizerTrainer(kind="char", vocab_size=60)


def source(folder: Path, train: Any, **options: Any) -> Parallel:
    return Parallel(train=train, val=write_pair(folder, "val", 3, seed=9), **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three shards of 4, 5 and 6 pairs, the last compressed, and a corpus of 2 pairs."""
    (tmp_path / "c").mkdir()
    for number in range(3):
        for path in write_pair(tmp_path / "c", f"part-{number}", 4 + number, seed=number):
            if number == 2:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
    write_pair(tmp_path, "other", 2, seed=5)
    return tmp_path


@pytest.mark.parametrize("pattern", ["c/part-*.{}*", "**/part-?.{}*", "c/*-*.{}*"])
def test_files_of_both_sides_belong_together(folder: Path, pattern: str) -> None:
    found = shards("data.train", [folder / pattern.format(side) for side in ("en", "de")])
    names = [tuple(path.name for path in pair) for pair in found]
    assert names == [("part-0.en", "part-0.de"), ("part-1.en", "part-1.de"), ("part-2.en.gz", "part-2.de.gz")]


def test_a_corpus_of_many_files_has_one_weight(folder: Path) -> None:
    patterns, other = (
        [folder / f"c/part-*.{side}*" for side in ("en", "de")],
        [folder / f"other.{s}" for s in ("en", "de")],
    )
    plain = source(folder, patterns, src_lang="en", tgt_lang="de")
    assert not plain.has_one_pair
    prepared = prepare(plain, TRAINER, folder / "cache")
    assert prepared.kept_pairs("train") == [4, 5, 6]
    assert [prepared.locate("train", i) for i in (0, 4, 14)] == [(0, 1), (1, 1), (2, 6)]
    weighted = source(folder, [patterns, other], weights=[1, 3], src_lang="en", tgt_lang="de")
    assert weighted.repeats([4, 5, 6, 2]) == [1, 1, 1, 3]
    assert len(prepare(weighted, TRAINER, folder / "cache").dataset("train")) == 15 + 6
    even = source(folder, [patterns, other], temperature=1e9, src_lang="en", tgt_lang="de")
    assert even.repeats([4, 5, 6, 2]) == pytest.approx([1, 1, 1, 7.5])


def test_a_prefix_may_have_wildcards(folder: Path) -> None:
    files = source(folder, str(folder / "c" / "part-*"), src_lang="en", tgt_lang="de").train_files(folder)
    assert [src.name for src, _ in files] == ["part-0.en", "part-1.en"]  # as in a shell, .gz is another name


def test_pairs_are_held_out_from_all_files(folder: Path) -> None:
    patterns = [folder / f"c/part-*.{side}*" for side in ("en", "de")]
    divided = Parallel(train=patterns, val=3, src_lang="en", tgt_lang="de")
    assert len(divided.train_files(folder / "cache")) == 3


def test_mistakes_are_named(folder: Path) -> None:
    with pytest.raises(CorpusError, match=r"data.train: no files match .*x\*\.en and .*x\*\.de; check"):
        source(folder, [folder / "x*.en", folder / "x*.de"]).train_files(folder)
    (folder / "c" / "part-1.de").unlink()
    with pytest.raises(CorpusError, match=r"data.train: .*c/part-1\.en matches one of .*, but no file"):
        source(folder, [folder / "c/*.en", folder / "c/*.de"]).train_files(folder)
    several = source(folder, [folder / "c/*.en", folder / "c/*.de"], src_lang="en", tgt_lang="de")
    with pytest.raises(ConfigError, match="has several training corpora, wildcards or filters"):
        Multilingual(pairs={"a": several})


def test_a_file_whose_name_has_an_asterisk_is_a_file(folder: Path) -> None:
    pair = [path.rename(path.with_name(f"*{path.suffix}")) for path in write_pair(folder, "x", 2)]
    write_pair(folder, "y", 3)
    assert source(folder, pair).train_files(folder) == [tuple(pair)]


def test_tables_of_many_files(tmp_path: Path) -> None:
    for number in range(3):
        rows = {"en": [f"a {number}"] * (number + 1), "de": [f"b {number}"] * (number + 1)}
        parquet.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    val = tmp_path / "0.parquet"
    tables = Table(train=str(tmp_path / "*.parquet"), val=val, src="en", tgt="de")
    prepared = prepare(tables, TRAINER, tmp_path / "cache")
    assert prepared.kept_pairs("train") == [1, 2, 3]
    assert not tables.has_one_pair
    with pytest.raises(CorpusError, match=r"data.train: no such file: .*x\*\.parquet"):
        Table(train=str(tmp_path / "x*.parquet"), val=val, src="en", tgt="de").files(tmp_path)
