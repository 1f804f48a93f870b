"""Files named without a data source choose it."""

from pathlib import Path

import pytest

from softsearch.app.config.in_process import options_here
from softsearch.app.config.shorthands import with_data_choice
from softsearch.errors import SoftsearchError


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        (["data.train=a.tsv"], "table"),
        (["data.train=[a.en,a.de]"], "parallel"),
        (["data.train=[a.npy,a.de]"], "features"),
        (["data.hub=wmt14"], "huggingface"),
        (["data.train=[a.en,a.de]", "model=gru", "model.embedings.dim=32"], "parallel"),  # reported as it is
        (["data.train=[a.en,a.de]", "model=gru", "tokenizer.model=[en.model,de.model]"], "parallel"),
        (["data.train=[a.en,a.fr]", "batch_size=32"], "parallel"),
    ],
)
def test_files_choose_the_source_beside_any_options(words: list[str], choice: str) -> None:
    notes: list[str] = []
    assert with_data_choice("train", words, notes) == [*words, f"data={choice}"]
    assert len(notes) == 1


@pytest.mark.parametrize("words", [["data=toy", "data.train=a.tsv"], ["model=gru"], ["data.train=[]"]])
def test_nothing_is_chosen_beside_a_choice_or_without_files(words: list[str]) -> None:
    notes: list[str] = []
    assert with_data_choice("train", words, notes) == words
    assert not notes


@pytest.mark.parametrize(
    ("name", "content", "words", "message"),
    [
        ("a.json", '{"a": "b"}\n', ["data=table"], "a.json is JSON; name a file of one object per line .jsonl"),
        ("a.json", '{"a": "b"}\n', [], "a.json is JSON; name a file of one object per line .jsonl"),
        ("a.txt", "a\tb\n", ["data=table"], r"a.txt has no table suffix, expected one of .tsv, "),
        ("a.txt", "a\tb\n", [], "data.val is required"),
        ("a.tsv", "a\tb\n", [], "data.val is required"),
    ],
)
def test_a_file_of_another_kind_is_named_before_columns_and_other_files_are_asked_for(
    name: str, content: str, words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    with pytest.raises(SoftsearchError, match=message):
        options_here("train", [*words, f"data.train={name}", "run_dir=."])
