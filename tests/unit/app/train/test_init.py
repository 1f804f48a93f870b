"""A new run starts from a checkpoint's weights, and only from those of its own model and vocabularies."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from softsearch.app.config.build import build_model
from softsearch.app.config.composition import contents_of_init, with_model_of_init
from softsearch.app.config.options import Init, Train, Vectors
from softsearch.app.config.validation import build
from softsearch.app.train.choice import choose_start
from softsearch.app.train.init import differences, start_from, tokenizer_maker
from softsearch.app.train.model import freeze
from softsearch.app.train.start import Fresh, NewModel
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import model_config, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers, train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents
from tests.support.commands import ROOT

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


def describe(src: int, tgt: int) -> Seq2Seq:
    with torch.device("meta"):
        model: Seq2Seq = build(model_config("rnnsearch"), src_vocab_size=src, tgt_vocab_size=tgt)
    return model


def start(
    init: CheckpointContents,
    model: Seq2Seq,
    node: dict[str, Any] = NODE,
    tokenizers: Tokenizers = (TOKENIZER, TOKENIZER),
    **options: Any,
) -> None:
    start_from(init, NewModel(model, node, tokenizers), options=Init(**options), describe=describe)


def fresh() -> Seq2Seq:
    model = small_model("rnnsearch").train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def test_the_weights_are_the_checkpoint_s_and_the_model_trains() -> None:
    model, init = fresh(), contents()
    start(init, model)
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, init.weights[name]), name


@pytest.mark.parametrize("path", ["decoder.dropout", "encoder.dropout", "embeddings.sparse", "init"])
def test_options_of_training_may_differ(path: str) -> None:
    start(contents(), fresh(), changed(path, 0.25))


def test_only_whole_words_of_a_name_make_an_option_one_of_training() -> None:
    there = {"initial_state": "mean", "word_dropout": 0.1, "init": 1}
    here = {"initial_state": "last", "word_dropout": 0.2, "init": 2}
    assert list(differences(there, here, "model")) == ["model.initial_state is 'mean' there, 'last' here"]


def test_an_option_that_the_older_checkpoint_lacks_has_its_default() -> None:
    assert "reset" not in NODE["encoder"]["cell"]
    start(contents(), fresh(), changed("encoder.cell.reset", "before"))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("decoder.hidden_dim", 99, r"model\.decoder\.hidden_dim is \d+ there, 99 here"),
        (
            "decoder._target_",
            "softsearch.models.LuongDecoder",
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
    with pytest.raises(
        CheckpointError,
        match=rf"init=a\.ckpt is another model:\n  {expected}.*\nset the same options(.|\n)*\n  init=a\.ckpt ",
    ):
        start(contents(), fresh(), changed(path, value))


def test_weights_of_another_shape_are_refused() -> None:
    weights = small_model("rnnsearch").state_dict()
    weights["decoder.output_projection.bias"] = torch.zeros(3)
    with pytest.raises(CheckpointError, match=r"output_projection\.bias is \(3,\) there, \(\d+,\) here"):
        start(contents(weights), fresh())


@pytest.mark.parametrize(
    ("tokenizers", "expected"),
    [
        ((OTHER, OTHER), "another source vocabulary: 14 pieces there, but 12 pieces in this run's data"),
        ((TOKENIZER, OTHER), "another target vocabulary: 14 pieces there, but 12 pieces in this run's data"),
        ((TOKENIZER, REVERSED), "another target vocabulary: 14 pieces there, but 14 pieces, reversed in this run's"),
    ],
)
def test_another_vocabulary_is_refused(tokenizers: Tokenizers, expected: str) -> None:
    with pytest.raises(CheckpointError, match=expected):
        start(contents(), fresh(), tokenizers=tokenizers)


def options(**given: Any) -> Train:
    """Those that ``choose_start`` reads."""
    usual = dict.fromkeys(Train.__dataclass_fields__) | {"vectors": Vectors(src=None, tgt=None), "init": Init()}
    return Train(**usual | given)


def test_what_contradicts_it_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    def choose(given: Train) -> None:
        choose_start(replace(given, run_dir=tmp_path))

    assert type(choose_start(options(run_dir=tmp_path))) is Fresh
    with pytest.raises(ConfigError, match=r"init=a\.ckpt starts a new run, but resume=b\.ckpt continues one"):
        choose(options(init=Init(ckpt=Path("a.ckpt")), resume=Path("b.ckpt")))
    with pytest.raises(ConfigError, match=r"init=a\.ckpt has embeddings, but vectors\.tgt=v\.vec would replace them"):
        choose(options(init=Init(ckpt=Path("a.ckpt")), vectors=Vectors(src=None, tgt=Path("v.vec"))))
    with pytest.raises(CheckpointError, match=r"a\.ckpt does not exist"):
        choose(options(init=Init(ckpt=Path("a.ckpt")), resume="auto"))
    with pytest.raises(ConfigError, match=r"set init=RUN"):
        choose(options(init=Init(vocabulary="grow")))


def trained() -> CheckpointContents:
    """Of a model for the pieces of TOKENIZER."""
    torch.manual_seed(1)
    return contents(build_model(model_config("rnnsearch"), (TOKENIZER, TOKENIZER)).state_dict())


def test_a_new_piece_starts_as_the_mean_of_those_that_spelled_it(caplog: pytest.LogCaptureFixture) -> None:
    old = train_tokenizer(["one two three four", "two four"] * 3, kind="bpe", vocab_size=18)
    init = trained()._replace(tokenizers=(old, old))
    init.weights.update(build_model(model_config("rnnsearch"), (old, old)).state_dict())
    lines = ["one one two oneone", "three tone q"] * 5
    trainer = OmegaConf.create({"_target_": "softsearch.text.TokenizerTrainer", "vocab_size": 30})
    grow = Init(ckpt=Path("a.ckpt"), vocabulary="grow")
    maker = tokenizer_maker(options(tokenizer=trainer, init=grow), init, None)
    new = maker.train(lines, lines)[0]
    assert list(new.vocabulary())[: len(old.vocabulary())] == list(old.vocabulary())
    added = list(new.vocabulary())[len(old.vocabulary()) :]
    assert "q" in added
    assert any(piece.endswith("one") for piece in added)
    model = build_model(model_config("rnnsearch"), (new, new)).train()
    caplog.set_level("INFO")
    start(init, model, tokenizers=(new, new), vocabulary="grow")
    size = sum(p.numel() for p in build_model(model_config("rnnsearch"), (old, old)).parameters())
    assert f"{size:,} parameters in the checkpoint, {sum(p.numel() for p in model.parameters()):,} now" in caplog.text
    assert f"{len(added)} new ones set to the mean of their pieces, none drawn at random; none of" in caplog.text
    for name in ("encoder.embedding.weight", "decoder.embedding.weight", "decoder.output_projection.weight"):
        before, after = init.weights[name], model.state_dict()[name]
        assert torch.equal(after[: old.vocab_size], before), name
        for piece in added:
            if piece.startswith("\u2581"):  # the old tokenizer writes the word with these
                expected = before[old.encode(piece[1:])].mean(0)
                torch.testing.assert_close(after[new.vocabulary()[piece][0]], expected)
    assert new.encode("four") == old.encode("four")


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["init.vocabulary=grow"], "as many"),
        (["init.vocabulary=grow", "model=rnnsearch"], "as many"),
        (["init.vocabulary=grow", "tokenizer.vocab_size=30"], 30),
        (["init.vocabulary=own"], None),
        ([], None),
        (["tokenizer.vocab_size=30"], r"keeps its vocabulary, so tokenizer.vocab_size=30 would have no effect"),
        (["+tokenizer.src_vocab_size=30", "model=rnnsearch"], "would have no effect; remove it, or set init.vocab"),
    ],
)
def test_a_vocabulary_grows_by_what_is_asked_for(words: list[str], size: int | str | None) -> None:
    golden = ROOT / "tests" / "golden" / "checkpoint.ckpt"
    typed = [f"init.ckpt={golden}", *words]
    if isinstance(size, str) and size != "as many":
        with pytest.raises(ConfigError, match=size):
            with_model_of_init(typed)
        return
    found = [word for word in with_model_of_init(typed) if word.startswith("tokenizer.vocab_size=")]
    limit = contents_of_init(golden).tokenizers[1].vocab_size if size == "as many" else size
    assert found == ([] if size is None else [f"tokenizer.vocab_size={limit}"])


def test_an_own_vocabulary_takes_rows_by_piece() -> None:
    model, init = build_model(model_config("rnnsearch"), (OTHER, OTHER)).train(), trained()
    drawn = model.state_dict()["decoder.embedding.weight"].clone()
    start(init, model, tokenizers=(OTHER, OTHER), vocabulary="own")
    weight, before = model.state_dict()["decoder.embedding.weight"], init.weights["decoder.embedding.weight"]
    for piece, (token, _) in OTHER.vocabulary().items():
        known = TOKENIZER.vocabulary().get(piece)
        assert torch.equal(weight[token], drawn[token] if known is None else before[known[0]])
    assert torch.equal(model.state_dict()["encoder.embedding.weight"][:4], init.weights["encoder.embedding.weight"][:4])


def test_parts_are_taken_alone() -> None:
    model, init = build_model(model_config("rnnsearch"), (TOKENIZER, TOKENIZER)).train(), trained()
    drawn = {name: weight.clone() for name, weight in model.state_dict().items()}
    start(init, model, changed("decoder.hidden_dim", 99), parts=("encoder", "embeddings"))  # which differs elsewhere
    taken = {*model.parts()["encoder"], *model.parts()["embeddings"]}
    for name, weight in model.named_parameters(remove_duplicate=False):
        assert torch.equal(weight, (init.weights if weight in taken else drawn)[name]), name
    with pytest.raises(ConfigError, match=r"init\.parts has 'encodr', which is not a part .* 'encoder'"):
        start(init, model, parts=("encodr",))


def test_frozen_weights_are_not_trained() -> None:
    model = small_model("rnnsearch").train()
    freeze(model, ["embeddings", "encoder.*"])
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad != (name.startswith("encoder.") or name.endswith("coder.embedding.weight")), name
    with pytest.raises(ConfigError, match=r"freeze has 'encodr.*did you mean 'encoder'"):
        freeze(model, ["encodr"])
    with pytest.raises(ConfigError, match=r"leaves nothing to train"):
        freeze(model, ["*"])
