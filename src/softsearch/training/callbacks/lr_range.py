"""Search for a learning rate: the losses of a short run whose rate rises (Smith 2017, arXiv:1506.01186, section 3.3).

Lightning's own finder saves and restores the run, gives one rate to all groups of an optimizer and takes no schedule.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning
import numpy as np
from lightning.pytorch.callbacks import Callback
from numpy.typing import NDArray
from torch.optim import Optimizer

from softsearch.errors import ConfigError
from softsearch.ranges import Positive
from softsearch.training.lightning_internals import is_accumulating

log = logging.getLogger(__name__)
_MEMORY = 0.9  # of the running mean of losses that ends the run
_DIVERGED = 2.0  # times the lowest loss
_MIN_STEPS = 20  # steps


class RateRange(Callback):
    """Sets the rates, ends training when the loss diverges, draws losses over rates, and logs a suggestion.

    Args:
        path: the picture.
        lowest: rate of the first step; it rises exponentially, in place of the schedule.
        highest: rate at ``trainer.max_steps``. Groups of the optimizer keep their ratios.
    """

    def __init__(self, *, path: str | Path, lowest: Positive = 1e-6, highest: Positive = 1.0) -> None:
        self.path, self.lowest, self.highest = Path(path), lowest, highest
        self.rates: list[float] = []
        self.losses: list[float] = []

    def on_before_optimizer_step(self, trainer: lightning.Trainer, _: Any, optimizer: Optimizer) -> None:
        """Sets the rate of the step."""
        done, groups = trainer.global_step / max(1, trainer.max_steps - 1), optimizer.param_groups
        self.rates.append(self.lowest * (self.highest / self.lowest) ** done)
        for group in groups:
            group["lr"] = self.rates[-1] * group["initial_lr"] / groups[0]["initial_lr"]  # of the schedule's beginning

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """Notes the loss of a step's last batch; all processes decide alike when to stop."""
        if is_accumulating(trainer):
            return
        self.losses.append(float(trainer.strategy.reduce(pl_module.last_loss, reduce_op="mean")))
        mean = running_mean(self.losses)
        if len(mean) >= _MIN_STEPS and not mean[-1] < _DIVERGED * mean.min():  # or NaN
            trainer.should_stop = True

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Draws, and logs the suggestion."""
        if not trainer.is_global_zero:
            return
        from softsearch.report.curves import draw_rates

        count = min(len(self.rates), len(self.losses))
        rates, losses = np.array(self.rates[:count]), np.array(self.losses[:count])
        rate, lines = suggestion(rates, losses)
        draw_rates(rates, losses, lines[0], rate, self.path)
        lowest = float(rates[lines[0].argmin()])
        log.info("the loss falls fastest at a rate of %.1e, and is lowest at %.1e: %s", rate, lowest, self.path)
        log.info("try optimizer.lr=%.0e as the highest rate of the schedule", rate)


def running_mean(losses: Sequence[float]) -> NDArray[np.float64]:
    """The running mean of losses, without bias towards 0 at the beginning; it lags behind them."""
    mean, found = 0.0, []
    for step, loss in enumerate(losses, 1):
        mean = _MEMORY * mean + (1 - _MEMORY) * loss
        found.append(mean / (1 - _MEMORY**step))
    return np.array(found)


def before_explosion(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """The losses up to the last one that is not far above the lowest before it."""
    lowest = np.fmin.accumulate(losses)
    return losses[: np.flatnonzero(losses <= _DIVERGED * lowest).max(initial=-1) + 1]


def fitted_lines(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights and slopes at each step of the line through the losses around it, ``[2, steps]``: it does not lag.

    The lines are those of medians of five losses: the fall behind the peak of a single batch is not of the rate.
    """
    half = max(2, len(losses) // 20)
    losses = np.array([np.median(losses[max(0, step - 2) : step + 3]) for step in range(len(losses))])
    found = []
    for step in range(len(losses)):
        first = max(0, step - half)
        window = losses[first : step + half + 1]
        slope, height = np.polyfit(np.arange(len(window)) + first - step, window, 1)
        found.append((height, slope))
    return np.array(found).T


def suggestion(rates: NDArray[np.float64], losses: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """The rate where the loss falls fastest before it is lowest, and the :func:`fitted_lines` before it explodes.

    Rates rise exponentially, so that a step is a step of their logarithm.

    Raises:
        ConfigError: there are too few steps, or the loss never fell.
    """
    usable = before_explosion(losses)
    lines = fitted_lines(usable) if len(usable) > 2 else np.zeros((2, 1))
    end = int(lines[0].argmin()) + 1
    if len(losses) < _MIN_STEPS or end < 3:
        raise ConfigError(
            f"no learning rate can be suggested: the loss was lowest at step {end} of {len(losses)}; set "
            "trainer.max_steps=200 or more, or a lower callbacks.lr_range.lowest"
        )
    return float(rates[lines[1, :end].argmin()]), lines
