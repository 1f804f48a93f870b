"""Data sets of Hugging Face as files of lines in the cache."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.data.corpora.base import Unread
from softsearch.data.corpora.huggingface import HuggingFace
from softsearch.errors import ConfigError, CorpusError

datasets = pytest.importorskip("datasets")

ROWS = [{"en": "a\nman", "de": "ein Mann"}, {"en": "two", "de": "zwei"}]
COMMIT = "0123456789" * 4


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two splits and a column of languages."""
    folder = tmp_path_factory.mktemp("saved") / "set"
    one = datasets.Dataset.from_dict({"translation": ROWS, "id": [1, 2]})
    datasets.DatasetDict(train=one, validation=one.select([1])).save_to_disk(str(folder))
    return folder


def source(**options: Any) -> HuggingFace:
    return HuggingFace(**{"src": "translation.en", "tgt": "translation.de", "test": None, **options})


def lines(source: HuggingFace, cache: Path) -> dict[str, list[str]]:
    return {split: [path.read_text() for path in pair] for split, pair in source.files(cache).items()}


def test_a_saved_folder_and_a_column_of_languages(saved: Path, tmp_path: Path) -> None:
    data = source(root=saved)
    assert lines(data, tmp_path) == {"train": ["a man\ntwo\n", "ein Mann\nzwei\n"], "val": ["two\n", "zwei\n"]}
    assert (data.src_lang, data.tgt_lang) == ("en", "de")


def test_a_folder_of_files_follows_their_content(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for split, rows in (("train", ROWS), ("test", ROWS[1:])):
        datasets.Dataset.from_list(rows).to_parquet(tmp_path / "set" / f"{split}.parquet")
    data = source(root=tmp_path / "set", src="de", tgt="en", val="test")
    expected = {"train": ["ein Mann\nzwei\n", "a man\ntwo\n"], "val": ["zwei\n", "two\n"]}
    assert lines(data, tmp_path / "cache") == expected
    datasets.Dataset.from_list(ROWS[:1]).to_parquet(tmp_path / "set" / "train.parquet")
    assert lines(data, tmp_path / "cache")["train"] == ["ein Mann\n", "a man\n"]


def test_what_cannot_be_read_leaves_nothing(saved: Path, tmp_path: Path) -> None:
    def refused(message: str, error: type[Exception] = CorpusError, **options: Any) -> None:
        with pytest.raises(error, match=message) as caught:
            source(**options).files(tmp_path / "cache")
        assert "\n" not in str(caught.value)
        assert not [path for path in tmp_path.glob("cache/table*") if path.is_dir()]

    refused("no split 'dev', found train, validation; set data.train", root=saved, train="dev")
    refused("no column 'fr', found 'en', 'de'", ConfigError, root=saved, src="translation.fr")
    refused("row 1 has 1 as 'id', expected text", root=saved, src="id")
    refused("is not a folder with files", root=tmp_path / "none")
    script, odd = tmp_path / "script", tmp_path / "odd"
    script.mkdir()
    (script / "script.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    refused("cannot be read .*scripts are no longer supported", root=script)
    assert not (tmp_path / "ran").exists()
    odd.mkdir()
    (odd / "train.xml").write_text("<a/>")
    refused("odd is data of xml, expected one of arrow, csv, json, parquet, text", root=odd)
    (odd / "train.xml").rename(odd / "train.parquet")
    refused("split train of .*odd cannot be read", root=odd)


def test_the_hub_needs_a_commit_and_a_checkpoint_fetches_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.root and data.hub are None and None, expected one of them"):
        source()
    with pytest.raises(ConfigError, match=r"data.revision is 'main', expected the commit of a/b"):
        source(hub="a/b", revision="main")
    with pytest.raises(CorpusError, match="which was not read"):
        source(hub=Unread("a/b"), revision=COMMIT).files(tmp_path)
