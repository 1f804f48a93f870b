"""CTranslate2 writes what our greedy search writes, token for token (beams: benchmarks/decode_speed.py)."""

import json
import sys
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch

from softsearch.app.config.validation import build
from softsearch.errors import BundleError, ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.extras.formats.ctranslate2 import export_ctranslate2
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.batching import translate_ids
from softsearch.search.greedy import Greedy
from softsearch.testing.models import model_config
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, SPECIALS


@pytest.fixture(scope="module")
def joint() -> Tokenizers:
    tokenizer = train_tokenizer(["abcdefghij", "jihgfedcba"] * 3, kind="char", vocab_size=32)
    return tokenizer, tokenizer


@pytest.fixture(scope="module")
def separate(joint: Tokenizers) -> Tokenizers:
    return joint[0], train_tokenizer(["klmnopq rst"] * 3, kind="char", vocab_size=32)


def make_model(tokenizers: Tokenizers, *overrides: str, name: str = "transformer_tiny") -> Seq2Seq:
    torch.manual_seed(3)
    src, tgt = (tokenizer.vocab_size for tokenizer in tokenizers)
    model: Seq2Seq = build(model_config(name, *overrides), src_vocab_size=src, tgt_vocab_size=tgt)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model.eval()


def export(model: Seq2Seq, tokenizers: Tokenizers, path: Path, reference: Seq2Seq | None = None) -> float:
    return max(export_ctranslate2(model, TorchStepFunction(reference or model), tokenizers, path).values())


@pytest.mark.parametrize("tie", ["none", "output", "all"])
@pytest.mark.parametrize(
    "options",
    [
        ["pre_norm=true"],
        ["pre_norm=false", "activation=swish", "positions=learned", "max_positions=24", "norm_eps=0.01"],
        ["activation=gelu", "positions=sinusoidal_halves", "scale_embeddings=false"],
        ["positions=rotary"],
    ],
)
def test_every_transformer_writes_the_same_tokens(
    tie: str, options: list[str], joint: Tokenizers, separate: Tokenizers, tmp_path: Path
) -> None:
    tokenizers = joint if tie == "all" else separate
    both = [f"++model.{side}.{option}" for side in ("encoder", "decoder") for option in options]
    model = make_model(tokenizers, f"model.embeddings.tie={tie}", *both)
    assert export(model, tokenizers, tmp_path / "ct2") < 1e-4
    rng = np.random.default_rng(1)
    src = [rng.integers(len(SPECIALS), tokenizers[0].vocab_size, size).tolist() for size in (1, 3, 9, 20)]
    search = Greedy(max_length_factor=0.0, max_length_offset=20)
    expected = translate_ids(TorchStepFunction(model), search, src, batch_tokens=100)
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), device="cpu", compute_type="float32")
    texts = [tokenizers[0].pieces(ids) for ids in src]
    results = translator.translate_batch(texts, beam_size=1, min_decoding_length=0, max_decoding_length=20)
    for (best,), result in zip(expected, results, strict=True):
        assert result.hypotheses[0] == tokenizers[1].pieces(best.tokens)


def test_the_folder_holds_what_users_of_ctranslate2_need(
    joint: Tokenizers, separate: Tokenizers, tmp_path: Path
) -> None:
    export(make_model(joint), joint, tmp_path / "joint")
    assert {path.name for path in (tmp_path / "joint").iterdir()} == {
        "config.json", "joint.model", "model.bin", "shared_vocabulary.json"
    }  # fmt: skip
    names = json.loads((tmp_path / "joint" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    numbers = range(len(SPECIALS), len(names))  # which docs/many-hosts.md promises to clients of Triton
    assert names[len(SPECIALS) :] == joint[0].pieces(list(numbers))
    export(make_model(separate, "model.embeddings.tie=none"), separate, tmp_path / "separate")
    assert {"src.model", "tgt.model"} < {path.name for path in (tmp_path / "separate").iterdir()}


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_ssru", "transformer_rnn", "gao2020"])
def test_what_ctranslate2_lacks_is_refused(name: str, joint: Tokenizers, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="format=bundle"):
        export(make_model(joint, name=name), joint, tmp_path / "ct2")


def test_another_output_layer_is_refused(joint: Tokenizers, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"CTranslate2 needs a linear .* has ClassFactored; use format=bundle"):
        export(make_model(joint, "loss=class_factored"), joint, tmp_path / "ct2")


def test_reversed_text_is_refused(joint: Tokenizers, tmp_path: Path) -> None:
    tokenizers = SentencePieceTokenizer(joint[0].model, reverse=True), joint[1]
    with pytest.raises(ConfigError, match="only from left to right"):
        export(make_model(joint), tokenizers, tmp_path / "ct2")


def test_a_folder_with_something_in_it_is_kept(joint: Tokenizers, tmp_path: Path) -> None:
    (tmp_path / "ct2").mkdir()
    (tmp_path / "ct2" / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="is not empty"):
        export(make_model(joint), joint, tmp_path / "ct2")
    assert (tmp_path / "ct2" / "mine.txt").read_text() == "x"


def test_a_model_that_differs_is_not_written(joint: Tokenizers, tmp_path: Path) -> None:
    other = make_model(joint)
    torch.nn.init.normal_(other.decoder.output_projection.bias)
    with pytest.raises(BundleError, match="differ from the model's"):
        export(make_model(joint), joint, tmp_path / "ct2", reference=other)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_it_says_what_to_install(
    joint: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[ctranslate2\]"):
        export(make_model(joint), joint, tmp_path / "ct2")


def test_alignments_are_those_of_the_models_head(joint: Tokenizers, tmp_path: Path) -> None:
    model = make_model(joint, "model.decoder.alignment_layer=0", "model.decoder.alignment_head=0")
    export(model, joint, tmp_path / "out")
    src = joint[0].encode("abcd")
    translator = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32")
    pieces = [joint[0].pieces(src)]
    (found,) = translator.translate_batch(pieces, beam_size=1, max_decoding_length=1, return_attention=True)
    expected = model.decoder.step(torch.tensor([BOS]), model.encode(torch.tensor([[*src, EOS]]))).alignments
    assert expected is not None
    width = len(found.attention[0][0])
    np.testing.assert_allclose(found.attention[0][0], expected[0, :width].tolist(), atol=1e-5)
    with pytest.raises(ConfigError, match=r"from the first head or from all heads, but this model from head 1"):
        export(make_model(joint, "model.decoder.alignment_head=1"), joint, tmp_path / "other")
