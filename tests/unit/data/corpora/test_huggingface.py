"""Data sets of Hugging Face as files of lines in the cache."""

import json
from pathlib import Path
from typing import Any

import pytest

from softsearch.data.corpora.base import UnreadPath
from softsearch.data.corpora.huggingface import HuggingFace
from softsearch.errors import ConfigError, CorpusError

ROWS = [{"en": "a\nman", "de": "ein Mann"}, {"en": "two", "de": "zwei"}]
COMMIT = "0123456789" * 4


@pytest.fixture(scope="module", autouse=True)
def datasets() -> Any:
    """The package, which takes a second to import."""
    return pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def saved(datasets: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_a_folder_of_files_follows_their_content(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for split, rows in (("train", ROWS), ("test", ROWS[1:])):
        datasets.Dataset.from_list(rows).to_parquet(tmp_path / "set" / f"{split}.parquet")
    data = source(root=tmp_path / "set", src="de", tgt="en", val="test")
    expected = {"train": ["ein Mann\nzwei\n", "a man\ntwo\n"], "val": ["zwei\n", "two\n"]}
    assert lines(data, tmp_path / "cache") == expected
    datasets.Dataset.from_list(ROWS[:1]).to_parquet(tmp_path / "set" / "train.parquet")
    assert lines(data, tmp_path / "cache")["train"] == ["ein Mann\n", "a man\n"]


def test_a_line_without_end_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softsearch.data.corpora.huggingface._MAX_LINE", 3 << 20)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text('{"en": "a", "de": "' + "b" * (4 << 20) + '"}\n')
    with pytest.raises(CorpusError, match=r"train.jsonl has a line of over 3,145,728 bytes"):
        source(root=tmp_path / "set", src="en", tgt="de", val="train").files(tmp_path / "cache")


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
    refused("odd is xml data, expected one of arrow, csv, json, parquet, text", root=odd)
    (odd / "train.xml").rename(odd / "train.parquet")
    refused("split train of .*odd cannot be read", root=odd)


def test_the_hub_needs_a_commit_and_a_checkpoint_fetches_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.root and data.hub are None and None, expected one of them"):
        source()
    with pytest.raises(ConfigError, match=r"data.revision is 'main', expected the commit of a/b"):
        source(hub="a/b", revision="main")
    with pytest.raises(CorpusError, match="which was not read"):
        source(hub=UnreadPath("a/b"), revision=COMMIT).files(tmp_path)


def described(folder: Path, text: str, name: str = "README.md") -> Path:
    """A folder of rows with a description of them."""
    import datasets

    folder.mkdir()
    datasets.Dataset.from_list(ROWS).to_json(folder / "train.jsonl")
    (folder / name).write_text(text)
    return folder


def configs(text: str) -> str:
    return f"---\nconfigs:\n- config_name: default\n  {text}\n---\n"


ELSEWHERE = [
    "http://127.0.0.1:9/train.jsonl",
    "ssh://127.0.0.1/train.jsonl",
    "s3://bucket/train.jsonl",
    "hf://datasets/a/b/train.jsonl",
    "zip://train.jsonl::http://127.0.0.1:9/x.zip",
    "libarchive::train.zip",
    "../secret.jsonl",
    "data/../../secret.jsonl",
    "/etc/hosts",
    "~/secret.jsonl",
]


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize(
    "form", ["data_files: {}", "data_files:\n  - split: train\n    path: [{}]", "data_dir: {}\n  data_files: '*'"]
)
def test_a_description_names_files_of_its_folder_alone(name: str, form: str, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"en": "secret", "de": "geheim"}\n')
    root = described(tmp_path / "set", configs(form.format(f'"{name}"')))
    with pytest.raises(CorpusError, match="expected files in its folder") as caught:
        source(root=root, src="en", tgt="de", val="train").files(tmp_path / "cache")
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\nconfigs: [\n---\n", "README.md"),
        ("---\nconfigs: 3\n---\n", "README.md"),
        ("---\n- configs\n---\n", "README.md"),
        ("---\nconfigs: [3]\n---\n", "README.md"),
        ("---\na: &a [*a]\nconfigs: *a\n---\n", "README.md"),
        ("---\nconfigs: " + "[" * 5000 + "\n---\n", "README.md"),
        (configs("data_files: [{split: 3, path: 4}]"), "README.md"),
        (configs("chunksize: 0\n  data_files: train.jsonl"), "README.md"),
        ("configs: [", ".huggingface.yaml"),
        ("3", "state.json"),
        ('{"_data_files": 3}', "state.json"),
        ('{"_data_files": [{"filename": "../secret.arrow"}]}', "state.json"),
        ('{"splits": ["../secret"]}', "dataset_dict.json"),
        ("x", "train.zip"),
        ("x", "a\nb.jsonl"),
        ("x", "a::b.jsonl"),
    ],
)
def test_a_broken_folder_is_one_message(text: str, name: str, tmp_path: Path) -> None:
    root = described(tmp_path / "set", text, name)
    if name.endswith(".zip"):
        (root / "train.jsonl").unlink()
    with pytest.raises(CorpusError) as caught:
        source(root=root, src="en", tgt="de", val="train").files(tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_a_description_may_choose_files_and_pictures_stay_closed(tmp_path: Path) -> None:
    features = "features: [{name: en, dtype: string}, {name: de, dtype: string}, {name: p, dtype: image}]"
    root = described(tmp_path / "set", configs(f"data_files: 'tr*.jsonl'\n  {features}"))
    rows = [{**row, "p": {"path": str(tmp_path / "none.png"), "bytes": None}} for row in ROWS]
    (root / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (root / "more").mkdir()
    (root / "more" / "test.jsonl").symlink_to(tmp_path / "blob")  # as in the hub's cache
    (tmp_path / "blob").write_text("")
    data = source(root=root, src="en", tgt="de", val="train")
    assert lines(data, tmp_path / "cache")["train"] == ["a man\ntwo\n", "ein Mann\nzwei\n"]
