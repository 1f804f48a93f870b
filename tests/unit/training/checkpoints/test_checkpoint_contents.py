"""What a checkpoint holds besides Lightning's own state."""

from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.data.sentencepiece_file import with_folding
from softsearch.errors import CheckpointError
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import UNK
from softsearch.training.checkpoints.checkpoint_contents import FORMAT, SaveOrigin, read_contents, to_contents
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from tests.support.written import CONFIG


@pytest.fixture(scope="module")
def tokenizers() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """As a run has them."""
    trained = (train_tokenizer([text] * 3, kind="char", vocab_size=12) for text in ("abc", "xyzw"))
    src, tgt = (SentencePieceTokenizer(with_folding(each.model)) for each in trained)
    return src, tgt


@pytest.fixture
def checkpoint(tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]) -> dict[str, Any]:
    checkpoint: dict[str, Any] = {
        "state_dict": {"model.encoder.w": torch.ones(2), "val_nll.value": torch.zeros(1)},
        "global_step": 7,
    }
    callback = SaveOrigin({**CONFIG, "model": {"dim": 8}}, tokenizers)
    callback.on_save_checkpoint(None, None, checkpoint)  # type: ignore[arg-type]
    return checkpoint


def test_config_tokenizers_and_weights_come_back(
    tmp_path: Path, checkpoint: dict[str, Any], tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
) -> None:
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "x.ckpt")
    saved = read_contents(tmp_path / "x.ckpt")
    assert saved.config == {**CONFIG, "model": {"dim": 8}}
    assert [t.fingerprint for t in saved.tokenizers] == [t.fingerprint for t in tokenizers]
    assert {name: weight.tolist() for name, weight in saved.weights.items()} == {"encoder.w": [1.0, 1.0]}
    assert saved.step == 7


def test_an_older_checkpoint_folds_text(tmp_path: Path) -> None:
    older = train_tokenizer(["ab\u00fc cd"] * 3, kind="char", vocab_size=12)
    checkpoint: dict[str, Any] = {"state_dict": {"w": torch.ones(2)}, "global_step": 1}
    SaveOrigin(CONFIG, (older, older)).on_save_checkpoint(None, None, checkpoint)  # type: ignore[arg-type]
    src, _ = to_contents(tmp_path / "x.ckpt", checkpoint).tokenizers
    assert UNK in older.encode("abu\u0308\u00a0cd")
    assert src.encode("abu\u0308\u00a0cd") == older.encode("ab\u00fc cd")


def test_directions_come_back(
    tmp_path: Path, tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
) -> None:
    turned = SentencePieceTokenizer(tokenizers[0].model, reverse=True)
    checkpoint: dict[str, Any] = {"state_dict": {"w": torch.ones(2)}, "global_step": 1}
    SaveOrigin(CONFIG, (turned, tokenizers[1])).on_save_checkpoint(None, None, checkpoint)  # type: ignore[arg-type]
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "x.ckpt")
    assert [t.fingerprint for t in read_contents(tmp_path / "x.ckpt").tokenizers] == [
        turned.fingerprint,
        tokenizers[1].fingerprint,
    ]


def test_a_foreign_checkpoint_is_refused(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    del checkpoint["softsearch"]
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError, match=r"x.ckpt is not a softsearch checkpoint"):
        read_contents(tmp_path / "x.ckpt")


def test_another_format_is_refused(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    checkpoint["softsearch"]["format"] = FORMAT + 1
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError, match=rf"format is {FORMAT + 1}, expected {FORMAT}; use the version"):
        read_contents(tmp_path / "x.ckpt")


@pytest.mark.parametrize("options", [None, {}, {"rank": 2, "alpha": "many"}, {"rank": 0, "alpha": 3}])
def test_an_adapter_that_does_not_fit_is_named(options: Any, tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    checkpoint["state_dict"] |= {
        "model.x.base_layer.weight": torch.ones(3, 4),
        "model.x.lora_A.default.weight": torch.ones(2, 4),
        "model.x.lora_B.default.weight": torch.ones(3, 2),
    }
    checkpoint["softsearch"]["config"]["adapter"] = options
    with pytest.raises(CheckpointError, match=r"x\.ckpt: its adapter does not fit its weights .*use another file"):
        to_contents(tmp_path / "x.ckpt", checkpoint)


@pytest.mark.parametrize(
    ("base", "a", "b"),
    [
        ((3, 4), (2, 4), (3, 3)),
        ((3, 4), (2, 5), (3, 2)),
        ((3, 4), (1, 100_000), (100_000, 1)),
        ((1, 1), (2, 100_000), (100_000, 2)),  # addition would repeat it
        ((100_000, 1), (2, 100_000), (100_000, 2)),
        ((3, 4), (100_000, 4), (3, 100_000)),  # another rank than the config's
        ((4,), (2, 4), (4, 2)),
        ((3, 4, 1), (2, 4), (3, 2)),
        ((3, 4), (2,), (3, 2)),
    ],
)
def test_shapes_of_an_adapter_are_compared_before_they_are_multiplied(
    base: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...], tmp_path: Path, checkpoint: dict[str, Any]
) -> None:
    """Fault: a small file whose product takes gigabytes. Effect: an error that names the shapes."""
    shapes = {"base_layer": base, "lora_A.default": a, "lora_B.default": b}
    checkpoint["state_dict"] |= {f"model.x.{name}.weight": torch.ones(shape) for name, shape in shapes.items()}
    checkpoint["softsearch"]["config"]["adapter"] = {"rank": 2, "alpha": 3}
    with pytest.raises(CheckpointError) as refused:
        to_contents(tmp_path / "x.ckpt", checkpoint)
    assert f"model.x: {b} and {a} with rank 2 do not update {base}" in str(refused.value)
