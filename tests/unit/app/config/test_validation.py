"""A config is bound to the constructors that it names before anything is built."""

import logging
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Average, Evaluate, Shortlist
from softsearch.app.config.validation import (
    build,
    check,
    drop_options_of_replaced,
    nearest,
    plain,
    read_options,
    target_of,
)
from softsearch.data.sampler import Batching
from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch

BATCHING = "softsearch.data.Batching"
SEARCH = {"_target_": "softsearch.search.Greedy"}
TRANSLATE = {"_target_": "softsearch.training.TranslateValidation", "search": SEARCH, "samples_dir": "samples"}


def test_a_good_node_is_built() -> None:
    built = build(OmegaConf.create({"_target_": BATCHING, "tokens": 100, "sentences": None}))
    assert built == Batching(tokens=100)
    assert build(None) is None


def test_arguments_that_no_yaml_can_hold_are_passed() -> None:
    node = OmegaConf.create({"_target_": "softsearch.models.Embeddings", "dim": 4})
    assert build(node, src_vocab_size=5, tgt_vocab_size=6).tgt.weight.shape == (6, 4)


def test_a_partial_node_is_built_later() -> None:
    node = OmegaConf.create({"_target_": "softsearch.search.BeamSearch", "_partial_": True, "beam": 3})
    search = build(node)(n_best=2)
    assert type(build(node)) is partial  # without checks at every call, as Hydra's would do
    assert isinstance(search, BeamSearch)
    assert (search.beam, search.n_best) == (3, 2)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"_target_": BATCHING, "tokns": 1}, r"x\.tokns is not an option of Batching: did you mean 'tokens'\?"),
        ({"_target_": BATCHING, "zzz": 1}, r"x\.zzz is not an option of Batching: there are: .*max_length.*tokens"),
        (
            {"_target_": "softsearch.training.linear_decay", "_partial_": True, "warmup_stps": 1},
            r"x\.warmup_stps .* did you mean 'warmup_steps'",
        ),
        ({**TRANSLATE, "search": {**SEARCH, "max_len_factor": 1}}, r"x\.search\.max_len_factor .*'max_length_factor'"),
        ({**TRANSLATE, "sample": 1}, r"x\.sample is not an option of TranslateValidation"),
        ([{"_target_": BATCHING, "tokns": 1}], r"x\[0\]\.tokns is not an option"),
        ({"inner": {"_target_": BATCHING, "tokns": 1}}, r"x\.inner\.tokns is not an option"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest(node: Any, message: str) -> None:
    """Fault: a misspelt option, on the command line or in YAML. Effect: an error that suggests the closest match."""
    with pytest.raises(ConfigError, match=message):
        check(node, "x")


@pytest.mark.parametrize(
    ("target", "key", "value", "expected"),
    [
        (BATCHING, "tokens", "many", "a whole number"),
        (BATCHING, "tokens", 4.5, "a whole number"),
        (BATCHING, "tokens", True, "a whole number"),
        (BATCHING, "tokens", None, "a whole number"),
        (BATCHING, "sentences", "all", "a whole number of at least 1 or null"),
        ("softsearch.models.CrossEntropy", "smoothing", "none", "a number"),
        ("softsearch.text.TokenizerTrainer", "joint", "yes", "true or false"),
        ("softsearch.text.TokenizerTrainer", "kind", "bppe", "one of 'word', 'char', 'bpe', 'unigram'"),
        ("softsearch.training.MetricsFile", "path", 3, "text"),
        ("torch.optim.Adam", "fused", "abc", "true or false"),
        ("lightning.pytorch.Trainer", "max_steps", "abc", "a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(target: str, key: str, value: object, expected: str) -> None:
    """Fault: a value of the wrong type. Effect: an error before data are loaded."""
    with pytest.raises(ConfigError, match=rf"x\.{key} is {value!r} \({type(value).__name__}\), expected .*{expected}"):
        check({"_target_": target, "_partial_": True, key: value}, "x")


@pytest.mark.parametrize(
    ("target", "key", "value"),
    [
        (BATCHING, "sentences", None),
        ("softsearch.models.CrossEntropy", "smoothing", 0),
        ("torch.optim.Adam", "betas", [0.9, 0.98]),
        ("lightning.pytorch.Trainer", "devices", "auto"),
        ("lightning.pytorch.Trainer", "devices", 2),
        ("lightning.pytorch.Trainer", "max_time", "00:00:10:00"),
        ("lightning.pytorch.Trainer", "val_check_interval", 0.5),
    ],
)
def test_every_value_that_fits_passes(target: str, key: str, value: object) -> None:
    check({"_target_": target, "_partial_": True, key: value}, "x")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"_target_": BATCHING, "tokens": 0}, r"tokens is 0 .*of at least 1"),
        ({"_target_": "softsearch.models.CrossEntropy", "smoothing": 1.5}, "smoothing is 1.5"),
        (
            {"_target_": "softsearch.text.TokenizerTrainer", "src_vocab_size": 9},
            "tokenizer.src_vocab_size is 9, but with tokenizer.joint=true",
        ),
    ],
)
def test_a_value_out_of_range_is_our_own_error(node: dict[str, Any], message: str) -> None:
    """Fault: a value out of range.

    Effect: an error with the value and the range.

    Not Hydra's wrapper around it.
    """
    with pytest.raises(ConfigError, match=message):
        build(OmegaConf.create(node))


def test_what_people_write_may_name_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own code, without a fork; a misspelt key is answered there too."""
    (tmp_path / "theirs.py").write_text(
        "class Own:\n    def __init__(self, *, size: int) -> None:\n        self.size = size\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert build(OmegaConf.create({"_target_": "theirs.Own", "size": 3})).size == 3
    with pytest.raises(ConfigError, match=r"x\.sizee is not an option of Own: did you mean 'size'"):
        check({"_target_": "theirs.Own", "sizee": 3}, "x")
    assert build(OmegaConf.create({"_target_": "fractions.Fraction", "numerator": 1, "denominator": 2})) == 0.5
    check({"_target_": "builtins.dict", "a": 1}, "x")  # nobody knows its arguments


@pytest.mark.parametrize(
    ("target", "message"),
    [
        *((name, "which cannot be imported") for name in ("softsearch.data.dataset.Nothing", "nothing.A", "Batching")),
        ("softsearch.errors", "a module, expected a class or a function"),
    ],
)
def test_a_target_that_is_no_class_is_named(target: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"x\._target_ is '{target}', {message}"):
        check({"_target_": target}, "x")


def test_a_missing_argument_is_named() -> None:
    node = {"_target_": "softsearch.training.ExactResume"}
    with pytest.raises(ConfigError, match=r"x\.seed is missing, but ExactResume needs it"):
        check(node, "x")
    check(node, "x", given=["seed"])


def test_plain_resolves_and_names_what_is_missing() -> None:
    assert plain(OmegaConf.create({"a": 1, "b": "${a}", "c": [{"d": "${b}"}]})) == {"a": 1, "b": 1, "c": [{"d": 1}]}
    with pytest.raises(ConfigError, match=r"data\.train"):
        plain(OmegaConf.create({"data": {"train": "???"}}))
    with pytest.raises(ConfigError, match=r"b.*nowhere"):
        plain(OmegaConf.create({"b": "${nowhere}"}))


def test_nearest() -> None:
    assert nearest("modle", ["model", "data"]) == "did you mean 'model'?"
    assert nearest("zzz", ["model", "data"]) == "there are: data, model"


def test_options_are_typed_objects() -> None:
    config = OmegaConf.create({"ckpt": ["a.ckpt", "b.ckpt"], "out": "c.ckpt", "run": None, "last": 5})
    assert read_options(config, Average) == Average(
        run=None, last=5, ckpt=[Path("a.ckpt"), Path("b.ckpt")], out=Path("c.ckpt")
    )
    with pytest.raises(ConfigError, match=r"last is 0 \(int\), expected a whole number of at least 1"):
        read_options(OmegaConf.merge(config, {"last": 0}), Average)


def test_sections_and_groups_of_options() -> None:
    config = composed("evaluate", "ckpt=a.ckpt", "shortlist.frequent=7", "run_dir=x", "test=[a.en,a.de]")
    options = read_options(config, Evaluate)
    assert options.shortlist == Shortlist(frequent=7, translations=10)
    assert (options.ckpt, options.test) == (Path("a.ckpt"), (Path("a.en"), Path("a.de")))
    assert target_of(options.search, "search") is BeamSearch
    assert options.data is None


BILINEAR = re.findall(
    r"```python\n(from torch import nn\n\nfrom softsearch.models import Attention\n.*?)```",
    (Path(__file__).parents[4] / "docs" / "models.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


def test_a_part_is_a_class_and_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """docs/models.md as printed, in a file of the current folder, which is not on the path."""
    (tmp_path / "my_bilinear.py").write_text(BILINEAR[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    words = ["model.decoder.attention._target_=my_bilinear.BilinearAttention"]
    config = composed("train", *words, "name=x", f"run_dir={tmp_path}")
    caplog.set_level(logging.INFO)
    drop_options_of_replaced(config, words)
    assert caplog.messages == ["model.decoder.attention: left out dim, which BilinearAttention does not take"]
    model = build(config.model, src_vocab_size=10, tgt_vocab_size=10)
    assert type(model.decoder.attention).__name__ == "BilinearAttention"


def test_options_that_are_typed_are_not_dropped(caplog: pytest.LogCaptureFixture) -> None:
    cell = "softsearch.models.ElmanCell"
    words = [f"model.decoder.cell._target_={cell}", "+model.decoder.cell.resett=before"]
    config = composed("train", *words, "name=x", "run_dir=x")
    caplog.set_level(logging.INFO)
    drop_options_of_replaced(config, words)
    assert "resett" in config.model.decoder.cell
    assert caplog.messages == []


def test_a_class_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        build(OmegaConf.create({"_target_": "no_such_package.Thing"}))
    assert str(error.value).endswith("pip install -e . in the folder of no_such_package, or set PYTHONPATH to the "
                                     "folder that contains it")  # fmt: skip
