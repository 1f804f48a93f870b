"""Facts of the page about every architecture, and what it says of them by measure."""

import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.validation import read_options
from softsearch.errors import ConfigError
from softsearch.extras.claims.history import difficulties, examples, first_errors, history
from softsearch.extras.claims.options import History
from softsearch.extras.serve.web.about import read_about
from softsearch.text.filters import read_parallel
from tests.support.pairs import write_pair

EASY = {"long sentences": [1, 2, 3], "rare words": [-3, -2, -1], "another word order": [0.5, 0.1, 0]}


def test_every_model_has_facts_or_is_said_to_be_left_out(tmp_path: Path) -> None:
    models = {path.stem for path in (CONFIGS / "model").glob("*.yaml")}
    facts = OmegaConf.to_container(composed("history").about)
    assert isinstance(facts, dict)
    assert facts["models"].keys() <= models
    assert not [name for name in models - facts["models"].keys() if name not in facts["text"]]
    (tmp_path / "about.json").write_text(json.dumps(facts), encoding="utf-8")
    page = read_about(tmp_path / "about.json", models)
    assert all(
        about.year and about.title and about.idea and about.equation and about.flow for about in page.models.values()
    )


def test_a_long_a_rare_and_a_reordered_sentence_are_found(tmp_path: Path) -> None:
    """Links come from words that are together in the training text."""
    lines = {
        "train.en": "a b c\na b\nb c\na c\na\nb\nc\n",
        "train.de": "A B C\nA B\nB C\nA C\nA\nB\nC\n",
        "test.en": "a b\na b c\na x\n",
        "test.de": "A B\nC B A\nA X\n",
    }
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
    train, test = (read_parallel(tmp_path / f"{split}.en", tmp_path / f"{split}.de") for split in ("train", "test"))
    assert difficulties(train, test) == {
        "long sentences": [2, 3, 2],
        "rare words": [-4, -4, 0],
        "another word order": [0, 1, 0],
    }


def test_examples_are_hard_sentences_on_which_models_differ_most() -> None:
    chrf = {"good": [90.0, 80.0, 70.0], "bad": [90.0, 20.0, 30.0]}
    found = examples(EASY, chrf, {"good": "Good", "bad": "Bad"})
    assert found == [
        (2, "A long sentence. Best: Good (chrF 70); worst: Bad (chrF 30)."),
        (1, "A rare word. Best: Good (chrF 80); worst: Bad (chrF 20)."),
        (0, "Another word order. Best: Good (chrF 90); worst: Bad (chrF 90)."),
    ]


def test_a_model_gets_wrong_first_what_costs_it_most() -> None:
    assert first_errors(EASY, [90, 50, 20]) == (
        "long sentences: chrF 90 in the easiest third of the test set, 20 in the hardest."
    )
    assert first_errors(EASY, [20, 50, 90]).startswith("another word order: chrF 90 in")
    assert first_errors(EASY, [90, 90, 90]) == "no kind of sentence more than another: chrF 90 on average."
    mixed = EASY | {"rare words": [3, 1, 2]}  # 50 to 90, against 90 to 20
    assert first_errors(mixed, [90, 50, 20]).startswith("long sentences: ")


def test_an_unknown_model_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    options = composed("history", "models=[rnnserch]", f"run_dir={tmp_path}", f"runs_dir={tmp_path}")
    with pytest.raises(ConfigError, match=r"about\.models has no 'rnnserch'.*rnnsearch"):
        history(read_options(options, History))


def test_data_without_a_test_split_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, "train", 5)
    data = f"['data=parallel','data.train=[{pair[0]},{pair[1]}]','data.val=[{pair[0]},{pair[1]}]']"
    places = (f"run_dir={tmp_path}", f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path}")
    options = composed("history", "models=[gru]", f"budget.common={data}", *places)
    with pytest.raises(ConfigError, match="the data has the splits train, val, expected also test"):
        history(read_options(options, History))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("budget", ["small", "multi30k", "smallest"])
def test_a_budget_is_the_same_for_all_models_but_for_their_own_options(
    budget: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = "models=[sutskever2014,transformer_tiny]"
    places = (f"run_dir={tmp_path}", f"runs_dir={tmp_path}", "multi30k=/data")
    options = composed("history", f"budget={budget}", models, "dry_run=true", "overrides=['seed=7']", *places)
    history(read_options(options, History))
    lstm, transformer = capsys.readouterr().out.replace("\n", " ").split("softsearch train ")[1:]
    assert "model=sutskever2014 " in lstm
    assert "model=transformer_tiny " in transformer
    assert ["data.reverse_source=false" in each for each in (lstm, transformer)] == [True, False]
    assert (lstm.count("seed=7"), "scheduler.warmup_steps=800" in transformer) == (1, budget == "multi30k")
    assert ("data.root=" in lstm) == (budget == "multi30k")
    assert not list(tmp_path.iterdir())
