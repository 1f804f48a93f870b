"""Exponential moving average of the weights."""

from typing import Annotated, Any

import lightning
from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from softsearch.errors import ConfigError
from softsearch.ranges import Range
from softsearch.training.lightning_internals import average_model, swap_weights


class Ema(WeightAveraging):
    """Validates, tests and saves the average instead of the trained weights; does not affect training.

    After step t, the average is d * average + (1 - d) * weight, with d = min(decay, (t + 1) / (t + 10)), so that the
    random initial weights are soon forgotten. Lightning's callback would restore the trained weights before the
    validation set is translated, and would average word ids in buffers.

    Args:
        decay: 0.999 averages about the last thousand steps.
    """

    def __init__(self, *, decay: Annotated[float, Range(0, 1, open_low=True, open_high=True)] = 0.999) -> None:
        super().__init__(use_buffers=False, multi_avg_fn=self._average)
        self.decay = decay
        self.swapped = False

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Copies the model.

        Raises:
            ConfigError: the strategy is FSDP.
        """
        if isinstance(trainer.strategy, FSDPStrategy):
            raise ConfigError("callbacks=ema averages whole models, but trainer=fsdp splits them; remove one of them")
        super().setup(trainer, pl_module, stage)

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Moves the average to the model's device."""
        average = average_model(self)
        assert average is not None
        average.to(pl_module.device)
        # PyTorch compares the number of steps with 0 in each step; on a GPU, it would wait for the device.
        average.n_averaged = average.n_averaged.cpu()

    def on_validation_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Loads the average into the model."""
        self._swap(pl_module, to_average=True)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Restores the trained weights."""
        self._swap(pl_module, to_average=False)

    def on_exception(self, trainer: Any, pl_module: lightning.LightningModule, *_: Any) -> None:
        """Restores them if a validation is interrupted, before a checkpoint is saved."""
        self._swap(pl_module, to_average=False)

    def on_validation_epoch_start(self, *_: Any) -> None:
        """Does nothing, unlike the hook in Lightning's class."""

    def on_validation_epoch_end(self, *_: Any) -> None:
        """Does nothing, unlike the hook in Lightning's class."""

    def _swap(self, pl_module: lightning.LightningModule, *, to_average: bool) -> None:
        if average_model(self) is not None and self.swapped != to_average:
            swap_weights(self, pl_module)
            self.swapped = to_average

    def _average(self, averages: tuple[Tensor, ...] | list[Tensor], weights: Any, _: Tensor | int) -> None:
        average = average_model(self)
        assert average is not None
        steps = int(average.n_averaged)
        decay = min(self.decay, (1 + steps) / (10 + steps))
        get_ema_multi_avg_fn(decay)(averages, weights, steps)
