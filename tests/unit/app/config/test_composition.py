"""Configs of one's own: in ``softsearch_configs``, behind ``--config-dir`` and ``hydra.searchpath``."""

import shutil
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS, composed, extra_config_dirs, quoted

OWN = {
    "softsearch_configs/model/mine.yaml": "defaults: [gru]\nhidden_dim: 32\n",
    "softsearch_configs/recipe/mine.yaml": "# @package _global_\noptimizer: {lr: 0.25}\n",
    "softsearch_configs/model/rnnsearch.yaml": "hidden_dim: 1\n",
    "typed/optimizer/hot.yaml": "defaults: [adam]\nlr: 0.5\n",
    "searched/experiment/seven.yaml": "# @package _global_\nseed: 7\n",
    "package_of_configs/__init__.py": "",
    "package_of_configs/search/wide.yaml": "defaults: [beam]\nbeam: 50\n",
}


@pytest.fixture(autouse=True)
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    for name, text in OWN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = f"hydra.searchpath=[file://{tmp_path}/searched,pkg://package_of_configs]"
    return CommandLine("train", ["--config-dir", "typed", path, "model=mine"])


@pytest.mark.parametrize("text", ["a=b,c", "1", "null", "it's (x)", "a b", "\\'", "logs/2026-01-01/0.5"])
def test_a_quoted_text_is_read_as_it_is(text: str) -> None:
    assert composed("train", "model=gru", f"name={quoted(text)}").name == text
    assert (quoted(text) == text) == ("/" in text or (" " in text and "(" not in text))


@pytest.mark.parametrize("choice", ["model=mine", "optimizer=hot", "experiment=seven", "search=wide", "model=gru"])
def test_messages_know_their_names(line: CommandLine, choice: str) -> None:
    group, name = choice.split("=")
    assert name in line.choices(group)
    with pytest.raises(HydraException) as error:
        composed("train", *line.search_path(), f"{choice}{name[-1]}")
    assert f"did you mean '{name}'?" in str(line.explain(error.value))


@pytest.mark.parametrize("model", sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml")))
def test_a_recipe_of_our_model_is_ours(model: str) -> None:
    assert (CONFIGS / "recipe" / f"{model}.yaml").is_file()  # or else the current folder's would be composed


def test_a_file_in_the_current_folder_changes_no_model_of_ours(tmp_path: Path) -> None:
    (tmp_path / "softsearch_configs/recipe/transformer_base.yaml").write_text("# @package _global_\nseed: 99\n")
    assert composed("train", "model=transformer_base").seed == 1


def test_a_model_brings_its_recipe_and_its_keys_are_known(line: CommandLine) -> None:
    config = composed("train", "model=mine")
    assert (config.model.hidden_dim, config.optimizer.lr) == (32, 0.25)
    with pytest.raises(HydraException) as error:
        composed("train", "model=mine", "model.hiden_dim=3")
    assert "did you mean 'model.hidden_dim'?" in str(line.explain(error.value))


def test_our_names_win_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = composed("train", "model=rnnsearch", with_hydra=True)
    assert config.model.decoder._target_.startswith("softsearch.")
    monkeypatch.setattr(HydraConfig.instance(), "cfg", config)
    refused = "not model/rnnsearch.yaml, because softsearch's wins"
    with_files = [*extra_config_dirs()]
    shutil.rmtree(tmp_path / "softsearch_configs" / "model")
    shutil.rmtree(tmp_path / "softsearch_configs" / "recipe")
    assert [*extra_config_dirs()] == []
    assert with_files == [
        f"configs of {tmp_path / 'softsearch_configs'} are used: model/mine.yaml, recipe/mine.yaml, {refused}"
    ]
