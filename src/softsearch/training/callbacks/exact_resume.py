"""Exact resume: a resumed run has the same results as one that was never interrupted."""

from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping

from softsearch.ranges import Seed


class ExactResume(Callback):
    """Counts trained batches in the datamodule, and seeds every step with the seed, that count and the rank.

    The order of batches depends only on the count, which the datamodule saves in checkpoints. With
    ``batching.canonical`` the count and the rank are those of the process that would train the batch then.
    """

    def __init__(self, *, seed: Seed) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Seeds the step."""
        share = trainer.datamodule.batching.share(trainer.world_size)
        turn, own = divmod(trainer.datamodule.batches_trained, share)
        seed_step(self.seed, turn, trainer.global_rank + own * trainer.world_size)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Counts the batch."""
        trainer.datamodule.batches_trained += 1

    def on_load_checkpoint(self, trainer: lightning.Trainer, _: Any, checkpoint: dict[str, Any]) -> None:
        """Makes Lightning resume at the end of a batch, from which it continues correctly at every step.

        From a checkpoint saved at a validation, Lightning would expect a validation at that step in this run too. If
        the earlier run ended there, or this one has another interval, rows of metrics and accumulation windows would
        be off by one. A run ended by early stopping takes no further step. Batches are counted as those of this run's
        processes.
        """
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        data = trainer.datamodule  # type: ignore[attr-defined]  # set by fit
        saved = checkpoint["ParallelDataModule"] if data.batching.canonical else {"world_size": trainer.world_size}
        for counts in (progress["total"], progress["current"]):
            for name in ("ready", "started", "processed"):
                counts[name] = counts[name] * saved["world_size"] // trainer.world_size
            counts["completed"] = counts["processed"] - 1
        for callback in trainer.callbacks:  # type: ignore[attr-defined]  # set by a connector
            if isinstance(callback, EarlyStopping) and (state := checkpoint["callbacks"].get(callback.state_key)):
                state["patience"] = callback.patience  # that of this run, which may be larger to train longer
                has_ended = state.get("stopping_reason_message") is not None
                trainer.should_stop |= has_ended and state["wait_count"] >= max(1, callback.patience)


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seeds PyTorch for one training step, so that dropout depends only on these three numbers."""
    mixed = (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + rank * 0x94D049BB133111EB) % 2**63
    torch.manual_seed(mixed)
