"""Pretrained embeddings find their way into a model."""

import logging
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from softsearch.app.build import load_vectors
from softsearch.errors import ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from tests.contract.models import SMALL, SRC_VOCAB, small_model

TOKENIZERS = tuple(
    train_tokenizer([" ".join(words)], kind="word", vocab_size=SRC_VOCAB)
    for words in (("cat", "dog", "house"), ("Katze", "Hund", "Haus"))
)


def pair() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    return TOKENIZERS[0], TOKENIZERS[1]


def write(folder: Path, token: str, value: int) -> str:
    path = folder / f"{token}.vec"
    path.write_text(f"1 {SMALL['dim']}\n{token}{f' {value}' * int(SMALL['dim'])}\n")
    return str(path)


def load(model: Seq2Seq, src: str | None, tgt: str | None) -> None:
    load_vectors(OmegaConf.create({"src": src, "tgt": tgt}), model, pair())


def changed(before: torch.Tensor, after: torch.Tensor) -> list[int]:
    return (before != after).any(dim=1).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("sides", [("src",), ("tgt",), ("src", "tgt")])
def test_each_side_gets_its_vectors(tmp_path: Path, sides: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = small_model("transformer_tiny", "model.embeddings.tie=output").float()
    words = {"src": "dog", "tgt": "Haus"}
    files = {side: write(tmp_path, words[side], 5) if side in sides else None for side in words}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    load(model, files["src"], files["tgt"])
    matrices = {"src": "encoder.embedded.tokens.weight", "tgt": "decoder.embedded.tokens.weight"}
    for side, tokenizer in zip(matrices, pair(), strict=True):
        row = tokenizer.encode(words[side])[0]
        after = model.state_dict()[matrices[side]]
        assert changed(before[matrices[side]], after) == ([row] if side in sides else [])
        assert not files[side] or after[row].tolist() == [5.0] * int(SMALL["dim"])
    assert torch.equal(model.decoder.output.weight, model.state_dict()[matrices["tgt"]])
    assert caplog.text.count("1 of 3 pieces found among 1 (0 as they are, 1 without the space mark)") == len(sides)


def test_one_matrix_takes_one_file(tmp_path: Path) -> None:
    model = small_model("transformer_tiny", "model.embeddings.tie=all").float()
    with pytest.raises(ConfigError, match=r"tie=all has one matrix for both"):
        load(model, write(tmp_path, "dog", 5), write(tmp_path, "Haus", 5))
    load(model, None, write(tmp_path, "Haus", 5))


def test_a_model_without_a_source_has_no_source_vectors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vectors.src is set, but the model has no such embeddings"):
        load(small_model("rnnlm").float(), write(tmp_path, "dog", 5), None)
