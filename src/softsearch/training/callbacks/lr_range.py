"""Learning-rate range test: a short run in which the rate rises (Smith 2017, arXiv:1506.01186, section 3.3).

Lightning's finder saves and restores the run, sets one rate for all parameter groups and does not support schedules.
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
_MEMORY = 0.9  # decay of the running mean of losses
_DIVERGED = 2.0  # times the lowest loss: ends the run
_MIN_STEPS = 20  # before the run may end


class RateRange(Callback):
    """Raises the rate, ends training when the loss diverges, plots the loss against the rate, and logs a suggestion.

    Args:
        path: the figure.
        lowest: rate of the first step; it rises exponentially and replaces the schedule.
        highest: rate at ``trainer.max_steps``; the ratios between parameter groups are kept.
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
            group["lr"] = self.rates[-1] * group["initial_lr"] / groups[0]["initial_lr"]  # ratios at the start

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """Records the loss of a step's last batch; all processes stop at the same step."""
        if is_accumulating(trainer):
            return
        self.losses.append(float(trainer.strategy.reduce(pl_module.last_loss, reduce_op="mean")))
        mean = running_mean(self.losses)
        if len(mean) >= _MIN_STEPS and not mean[-1] < _DIVERGED * mean.min():  # also true for NaN
            trainer.should_stop = True

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Draws the figure, and logs the suggestion."""
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
    """Returns the running mean of losses, without bias towards 0 at the beginning; it lags behind the losses."""
    mean, found = 0.0, []
    for step, loss in enumerate(losses, 1):
        mean = _MEMORY * mean + (1 - _MEMORY) * loss
        found.append(mean / (1 - _MEMORY**step))
    return np.array(found)


def before_explosion(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the losses up to the last one that is not far above the lowest before it."""
    lowest = np.fmin.accumulate(losses)
    return losses[: np.flatnonzero(losses <= _DIVERGED * lowest).max(initial=-1) + 1]


def fitted_lines(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fits a line to the losses around each step; returns heights and slopes ``[2, steps]``, without lag.

    Lines are fitted to medians of five losses, so that a peak from a single batch is not mistaken for a fall.
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
    """Returns the rate where the loss falls fastest before its minimum, and ``fitted_lines`` before it explodes.

    Rates rise exponentially, so steps are equidistant in the logarithm of the rate.

    Raises:
        ConfigError: there are not enough steps, or the loss never fell.
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
