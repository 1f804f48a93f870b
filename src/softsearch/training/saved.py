"""What a checkpoint holds besides Lightning's own state: enough to rebuild the model and to translate with it."""

from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
from lightning.pytorch.callbacks import Callback, WeightAveraging
from torch import Tensor

from softsearch.errors import CheckpointError
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.training.checkpoint_io import load_checkpoint

FORMAT = 1
ORIGIN = "softsearch"
_PREFIX = "model."  # of the Seq2Seq inside the LightningModule


class SaveOrigin(Callback):
    """Adds the run's config and tokenizers to each checkpoint, as plain values and tensors.

    Args:
        config: the resolved config, plain values.
        tokenizers: source and target.
    """

    def __init__(
        self, config: dict[str, Any], tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
    ) -> None:
        self.origin = {
            "format": FORMAT,
            "config": config,
            "tokenizers": [torch.frombuffer(bytearray(t.model), dtype=torch.uint8) for t in tokenizers],
            "reversed": [t.reverse for t in tokenizers],
        }

    def on_save_checkpoint(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Adds them."""
        checkpoint[ORIGIN] = self.origin

    def on_load_checkpoint(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Refuses to train on from an average as if it were the trained weights.

        Raises:
            CheckpointError: the run kept a moving average, and does not any more.
        """
        averaging = any(isinstance(callback, WeightAveraging) for callback in trainer.callbacks)  # type: ignore[attr-defined]
        if "current_model_state" in checkpoint and not averaging:
            raise CheckpointError(
                "the checkpoint to resume from holds a moving average of the weights; resume with callbacks=ema"
            )


class Saved(NamedTuple):
    """A checkpoint as read for anything but resuming."""

    path: Path
    config: dict[str, Any]
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
    weights: dict[str, Tensor]  # of the Seq2Seq
    step: int
    averaged: int  # checkpoints that the weights are the mean of

    def describe(self) -> str:
        """Which weights these are."""
        mean = f", the mean of {self.averaged} checkpoints" if self.averaged > 1 else ""
        return f"{self.path}, step {self.step}{mean}"


def read_saved(path: str | Path) -> Saved:
    """Reads a checkpoint of this lab.

    Raises:
        CheckpointError: it is missing, damaged, of another program or of a newer version.
    """
    return to_saved(Path(path), load_checkpoint(Path(path)))


def to_saved(path: Path, checkpoint: dict[str, Any]) -> Saved:
    """Takes what :func:`read_saved` returns out of a checkpoint that has been read from ``path``."""
    origin = checkpoint.get(ORIGIN)
    if not isinstance(origin, dict):
        raise CheckpointError(f"{path} is no softsearch checkpoint; expected one that src/train.py wrote")
    if origin["format"] > FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {origin['format']}, this version reads up to {FORMAT}; update softsearch"
        )
    src, tgt = (
        SentencePieceTokenizer(bytes(model.numpy()), reverse=reverse)
        for model, reverse in zip(origin["tokenizers"], origin.get("reversed", (False, False)), strict=True)
    )
    weights = {
        name.removeprefix(_PREFIX): tensor
        for name, tensor in checkpoint["state_dict"].items()
        if name.startswith(_PREFIX)
    }
    return Saved(path, origin["config"], (src, tgt), weights, checkpoint["global_step"], checkpoint.get("averaged", 1))
