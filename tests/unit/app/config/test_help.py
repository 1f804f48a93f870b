"""The help of commands: complete, with the comments of the YAML, and nothing of another command."""

import re
import shlex
from pathlib import Path

import pytest

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import composed
from softsearch.app.config.help import File, Help
from softsearch.app.config.options import options_of
from softsearch.app.config.resolvers import register_resolvers
from softsearch.commands import every_command
from softsearch.errors import ConfigError


@pytest.fixture(autouse=True)
def resolvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    register_resolvers()


def said(command: str, *words: str) -> str:
    return str(Help(CommandLine(command, ["--help", *words])))


@pytest.mark.parametrize("command", [each.name for each in every_command() if each.takes == "key=value"])
def test_a_command_lists_what_it_takes_and_nothing_else(command: str) -> None:
    text = said(command)
    lines = [line for line in text.splitlines() if f"softsearch {command}" not in line]  # examples are not folded
    assert max(map(len, lines)) <= 80
    examples = re.findall(rf"^  softsearch {command} (.*)", text, re.MULTILINE)
    assert len(examples) >= 3
    for example in examples:
        words = shlex.split(example)
        composed(command, *words if words[0] != "-m" else [])
    listed = {key.partition(".")[0] for key in re.findall(r"^  ([\w.]+)=", text, re.MULTILINE)} - {"hydra"}
    if (options := options_of(command)) is not None:
        assert listed == {*options.__dataclass_fields__} | ({"recipe", "launcher", "experiment", "debug"} & listed)
    assert "Hydra" not in text
    assert "_target_" not in text


def test_a_choice_is_explained_with_the_comments_of_its_files() -> None:
    text = said("train", "model=transformer_tiny", "model.encoder.num_layers=2")
    assert "arXiv:1706.03762" in text
    for line in (
        r"model.encoder +TransformerEncoder",  # its class
        r"model.encoder.num_layers=2 +number of layers",  # as typed
        r"model.encoder.activation=relu\s+or gelu, swish",
        r"model.embeddings.tie=all +shared matrices: none; output: target",
    ):
        assert re.search(f"^  {line}", text, re.MULTILINE), line
    assert "model/attention" not in text
    assert re.search(r"^  model.decoder.alignment_layer=-1\s+layer whose attention", text, re.MULTILINE)  # resolved
    text = said("train", "model=gao2020", "method=guided_alignment")
    assert re.search(r"^  model.decoder.alignment_layer=-2\s+layer whose attention", text, re.MULTILINE)
    assert "${" not in text
    text = said("train", "model=nematus")
    assert re.search(r"^  model.decoder.initial_state +MeanState: s_0 = tanh\(", text, re.MULTILINE)  # of _target_
    alone = re.findall(r"^  (\S+)\n(?! {20})", text + "\n", re.MULTILINE)
    assert not alone  # without an explanation


def test_a_docstring_explains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "softsearch_configs" / "optimizer"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(
        "_target_: softsearch.training.Muon\n_partial_: true\nnewton_schulz_steps: 5\nmomentum: 0.5 # of it\n"
    )
    lines = [" ".join(line.split()) for line in said("train", "optimizer=mine").splitlines()]
    assert lines == ["optimizer=mine", "optimizer.newton_schulz_steps=5", "optimizer.momentum=0.5 of it"]


def test_a_group_lists_its_choices_and_a_key_its_section() -> None:
    assert re.search(r"^  plateau +\S", said("train", "scheduler"), re.MULTILINE)
    assert said("evaluate", "guard").count("\n") >= 2
    assert "optimizer steps" in said("train", "trainer.max_steps")
    assert "model=transformer_tiny" in said("train", "experiment=wu2021")
    assert "hydra.launcher.n_jobs=2" in said("train", "launcher=joblib")
    assert {"metric=chrf", "metric=ter"} <= {*said("train", "metric=[chrf,ter]").splitlines()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["modl"], "train has no group and no option 'modl'; did you mean 'model'"),
        (["trainer.max_step"], "did you mean 'trainer.max_steps'"),
        (["--foo"], "there is no option --foo"),
        (["method/decay"], "method/decay chooses a part that method does not have"),
    ],
)
def test_a_mistake_is_answered_with_the_nearest_name(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        said("train", *words)


def test_comments_stand_behind_keys_or_below_them() -> None:
    file = File.read(
        "# @package _global_\n# first\n# second\n"
        "defaults:\n  - override /data: a # of text\n  - base\n"
        "a: 1 # one\nb: {c: '#'} # two\nd: # three\n  e: null # four\n    # and more\n# not of e\nf: [1,\n  2] # five\n"
    )
    assert file.header == ["first", "second"]
    assert {key: text for key, text in file.keys.items() if text} == {
        "defaults.override /data": "of text", "a": "one", "b": "two", "d": "three", "d.e": "four and more", "f": "five",
    }  # fmt: skip
    assert {"b.c", "defaults"} <= file.keys.keys()
