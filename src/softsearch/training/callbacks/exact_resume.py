"""Makes a resumed run equal to one that was never interrupted."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.training.module import seed_step


class ExactResume(Callback):
    """Counts trained batches in the datamodule, and seeds each step from the seed, that count and the rank.

    The count is all that the order of batches depends on, and the seed all that dropout depends on; the datamodule's
    state carries the count into checkpoints.

    Args:
        seed: the run's.
    """

    def __init__(self, *, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Seeds the step."""
        seed_step(self.seed, _datamodule(trainer).batches_trained, trainer.global_rank)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Counts it."""
        _datamodule(trainer).batches_trained += 1


def _datamodule(trainer: lightning.Trainer) -> Any:
    return trainer.datamodule  # type: ignore[attr-defined]  # set by fit, missing from Lightning's annotations
