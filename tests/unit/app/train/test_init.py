"""A new run starts from a checkpoint's weights, and only from those of its own model and vocabularies."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from softsearch.app.config.options import Train, Vectors
from softsearch.app.train.init import differences, read_init, start_from
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.testing.models import model_config, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers, train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents

TOKENIZER = train_tokenizer(["one two three four"] * 3, kind="char", vocab_size=14)
OTHER = train_tokenizer(["five six seven"] * 3, kind="char", vocab_size=12)
REVERSED = SentencePieceTokenizer(TOKENIZER.model, reverse=True)
NODE: dict[str, Any] = OmegaConf.to_container(model_config("rnnsearch"), resolve=True)  # type: ignore[assignment]


def contents(weights: dict[str, torch.Tensor] | None = None, node: dict[str, Any] = NODE) -> CheckpointContents:
    config = {"name": "rnnsearch", "model": node, "data": {}, "tokenizer": {}}
    saved = small_model("rnnsearch").state_dict() if weights is None else weights
    return CheckpointContents(Path("a.ckpt"), config, (TOKENIZER, TOKENIZER), saved, 7, 1)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The model's config with another value."""
    node = copy.deepcopy(NODE)
    *above, key = path.split(".")
    inner = node
    for name in above:
        inner = inner[name]
    if value is None:
        del inner[key]
    else:
        inner[key] = value
    return node


def fresh() -> Seq2Seq:
    model = small_model("rnnsearch").train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def test_the_weights_are_the_checkpoint_s_and_the_model_trains() -> None:
    model, init = fresh(), contents()
    start_from(init, model, NODE, (TOKENIZER, TOKENIZER))
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, init.weights[name]), name


@pytest.mark.parametrize("path", ["decoder.dropout", "encoder.dropout", "embeddings.sparse", "init"])
def test_options_of_training_may_differ(path: str) -> None:
    start_from(contents(), fresh(), changed(path, 0.25), (TOKENIZER, TOKENIZER))


def test_only_whole_words_of_a_name_make_an_option_one_of_training() -> None:
    there = {"initial_state": "mean", "word_dropout": 0.1, "init": 1}
    here = {"initial_state": "last", "word_dropout": 0.2, "init": 2}
    assert list(differences(there, here, "model")) == ["model.initial_state is 'mean' there, 'last' here"]


def test_an_option_that_the_older_checkpoint_lacks_has_its_default() -> None:
    assert "reset" not in NODE["encoder"]["cell"]
    start_from(contents(), fresh(), changed("encoder.cell.reset", "before"), (TOKENIZER, TOKENIZER))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("decoder.hidden_dim", 99, r"model\.decoder\.hidden_dim is \d+ there, 99 here"),
        (
            "decoder._target_",
            "softsearch.models.luong.LuongDecoder",
            r"model\.decoder is '.*AttentionalDecoder' there, '.*LuongDecoder' here",
        ),
        (
            "encoder.cell.reset",
            "after",
            r"model\.encoder\.cell\.reset is 'before' there, 'after' here",
        ),  # of no other shape
    ],
)
def test_another_model_is_refused_with_both_sides(path: str, value: Any, expected: str) -> None:
    with pytest.raises(CheckpointError, match=rf"init=a\.ckpt is another model: {expected}.*set the same options"):
        start_from(contents(), fresh(), changed(path, value), (TOKENIZER, TOKENIZER))


def test_weights_of_another_shape_are_refused() -> None:
    weights = small_model("rnnsearch").state_dict()
    weights["decoder.output_projection.bias"] = torch.zeros(3)
    with pytest.raises(CheckpointError, match=r"output_projection\.bias is \(3,\) there, \(\d+,\) here"):
        start_from(contents(weights), fresh(), NODE, (TOKENIZER, TOKENIZER))


@pytest.mark.parametrize(
    ("tokenizers", "expected"),
    [
        ((OTHER, OTHER), "another source vocabulary: 14 pieces there, 12 pieces in this run's data"),
        ((TOKENIZER, OTHER), "another target vocabulary: 14 pieces there, 12 pieces in this run's data"),
        ((TOKENIZER, REVERSED), "another target vocabulary: 14 pieces there, 14 pieces, reversed in this run's data"),
    ],
)
def test_another_vocabulary_is_refused(tokenizers: Tokenizers, expected: str) -> None:
    with pytest.raises(CheckpointError, match=expected):
        start_from(contents(), fresh(), NODE, tokenizers)


def options(**given: Any) -> Train:
    """Those that ``read_init`` reads."""
    usual = dict.fromkeys(Train.__dataclass_fields__) | {"vectors": Vectors(src=None, tgt=None)}
    return Train(**usual | given)


def test_what_contradicts_it_is_refused_before_anything_is_read() -> None:
    assert read_init(options()) is None
    with pytest.raises(ConfigError, match=r"init=a\.ckpt starts a new run, but resume=b\.ckpt continues one"):
        read_init(options(init=Path("a.ckpt"), resume=Path("b.ckpt")))
    with pytest.raises(ConfigError, match=r"init=a\.ckpt has embeddings, but vectors\.tgt=v\.vec would replace them"):
        read_init(options(init=Path("a.ckpt"), vectors=Vectors(src=None, tgt=Path("v.vec"))))
    with pytest.raises(CheckpointError, match=r"a\.ckpt does not exist"):
        read_init(options(init=Path("a.ckpt"), resume="auto"))
