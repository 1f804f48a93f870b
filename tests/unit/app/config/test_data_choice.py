"""Files named without a data source choose it."""

import pytest

from softsearch.app.config.shorthands import with_data_choice


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
