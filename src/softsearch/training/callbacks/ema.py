"""An exponential moving average of the weights."""

from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor

from softsearch.errors import ConfigError


class Ema(WeightAveraging):
    """Validates, tests and saves an average of the weights in their place, as the model's; trains on as without it.

    After step t each averaged weight is d * average + (1 - d) * weight, with d = min(decay, (t + 1) / (t + 10)), so
    that the random start is soon forgotten. Lightning's callback does the rest. Of its defaults two do not suit: the
    trained weights would be back before the translations at the end of a validation, and word ids in buffers would be
    averaged.

    Args:
        decay: 0.999 averages about the last thousand steps.
    """

    def __init__(self, *, decay: float = 0.999) -> None:
        if not 0 < decay < 1:
            raise ConfigError(f"callbacks.ema.decay is {decay}, expected more than 0 and less than 1; change it")
        super().__init__(use_buffers=False, avg_fn=self._average)
        self.decay = decay
        self.swapped = False

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Copies the model.

        Raises:
            ConfigError: the model is shared out over processes.
        """
        if isinstance(trainer.strategy, FSDPStrategy):
            raise ConfigError("callbacks=ema averages whole models, trainer=fsdp splits them; leave out one of the two")
        super().setup(trainer, pl_module, stage)

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Moves the average to where the model has gone since it was copied."""
        assert self._average_model is not None
        self._average_model.to(pl_module.device)

    def on_validation_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Puts the average in the model."""
        self._swap(pl_module, to_average=True)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Puts the trained weights back."""
        self._swap(pl_module, to_average=False)

    def on_exception(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, exception: BaseException
    ) -> None:
        """Puts them back when a validation ends in the middle, before anyone saves."""
        self._swap(pl_module, to_average=False)

    def on_validation_epoch_start(self, *_: Any) -> None:
        """Not here."""

    def on_validation_epoch_end(self, *_: Any) -> None:
        """Not here."""

    def _swap(self, pl_module: lightning.LightningModule, *, to_average: bool) -> None:
        if self._average_model is not None and self.swapped != to_average:
            self._swap_models(pl_module)
            self.swapped = to_average

    def _average(self, average: Tensor, weight: Tensor, steps: Tensor | int) -> Tensor:
        decay = min(self.decay, (1 + int(steps)) / (10 + int(steps)))
        return torch.lerp(weight, average, decay)
