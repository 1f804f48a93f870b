"""Learning rates over time. Each is a factor of the optimizer's rate, 1 at the peak."""

import math
from collections.abc import Mapping
from typing import Literal

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from softsearch.errors import ConfigError


def constant(optimizer: Optimizer, *, warmup_steps: int = 1) -> LambdaLR:
    """Linear to the optimizer's rate at ``warmup_steps``, and no change after."""
    warmup = _at_least_one("warmup_steps", warmup_steps)
    return LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))


def inverse_sqrt(optimizer: Optimizer, *, warmup_steps: int) -> LambdaLR:
    """Linear to the peak at ``warmup_steps``, then times sqrt(warmup_steps / step) (Vaswani et al. 2017, 5.3)."""
    warmup = _at_least_one("warmup_steps", warmup_steps)
    return LambdaLR(optimizer, lambda step: min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5))


def linear_decay(optimizer: Optimizer, *, warmup_steps: int, decay_from: float, total_steps: int) -> LambdaLR:
    """Linear to the peak at ``warmup_steps``, constant, then linear to zero at ``total_steps``.

    Args:
        optimizer: whose rate to scale.
        warmup_steps: steps until the peak.
        decay_from: share of ``total_steps`` after which the rate falls, 0 to 1.
        total_steps: steps of the whole run.
    """
    warmup, total = _at_least_one("warmup_steps", warmup_steps), _at_least_one("total_steps", total_steps)
    if not 0 <= decay_from < 1:
        raise ConfigError(f"scheduler.decay_from is {decay_from}, expected at least 0 and less than 1; change it")

    def factor(step: int) -> float:
        left = (total - step) / (total * (1 - decay_from))
        return max(0.0, min(1.0, (step + 1) / warmup, left))

    return LambdaLR(optimizer, factor)


def halving(optimizer: Optimizer, *, start: int, every: int, warmup_steps: int = 1) -> LambdaLR:
    """Linear to the peak at ``warmup_steps``, constant, then half of it from step ``start``, and again ``every`` steps.

    With the steps of an epoch as ``every`` it is that of Luong et al. 2015 (section 4.1), with those of half an epoch
    that of Sutskever et al. 2014 (section 3.4).
    """
    warmup, every = _at_least_one("warmup_steps", warmup_steps), _at_least_one("every", every)
    if start < 0:
        raise ConfigError(f"scheduler.start is {start}, expected at least 0; set scheduler.start")

    def factor(step: int) -> float:
        return min(1.0, (step + 1) / warmup) * (1.0 if step < start else 0.5 ** (1 + (step - start) // every))

    return LambdaLR(optimizer, factor)


def cosine(optimizer: Optimizer, *, warmup_steps: int, total_steps: int, floor: float = 0.0) -> LambdaLR:
    """Linear to the peak at ``warmup_steps``, then half a cosine wave down to ``floor`` at ``total_steps``.

    Loshchilov & Hutter 2017 (arXiv:1608.03983), equation 5, without restarts. A run that ends before its warm-up sees
    the warm-up alone.

    Args:
        optimizer: whose rate to scale.
        warmup_steps: steps until the peak.
        total_steps: steps of the whole run.
        floor: the factor at the end, at least 0 and less than 1.
    """
    warmup, total = _at_least_one("warmup_steps", warmup_steps), _at_least_one("total_steps", total_steps)
    if not 0 <= floor < 1:
        raise ConfigError(f"scheduler.floor is {floor}, expected at least 0 and less than 1; set scheduler.floor")

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step + 1 - warmup) / (total + 1 - warmup))
        return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2

    return LambdaLR(optimizer, factor)


class Plateau(LRScheduler):
    """Linear to the peak at ``warmup_steps``, then times ``factor`` whenever validation has stopped improving.

    The rule is that of ``torch.optim.lr_scheduler.ReduceLROnPlateau`` without its threshold. That class cannot be used
    here: Lightning steps it after the checkpoint of a validation has been written, so that a resumed run would forget
    this validation, and it knows no warm-up. Ours is told by :meth:`observe` before; all that it remembers is in the
    checkpoint.

    Args:
        optimizer: whose rate to scale.
        monitor: the figure of each validation to watch.
        mode: ``min`` if the figure should fall, ``max`` if it should rise.
        factor: what the rate is multiplied by, more than 0 and less than 1.
        patience: validations in a row without a new best value that are tolerated; the next one reduces the rate.
        warmup_steps: steps until the peak; validations before it do not count.

    Raises:
        ConfigError: a value is out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        monitor: str = "val/loss",
        mode: Literal["min", "max"] = "min",
        factor: float = 0.5,
        patience: int = 2,
        warmup_steps: int = 1,
    ) -> None:
        if not 0 < factor < 1:
            raise ConfigError(
                f"scheduler.factor is {factor}, expected more than 0 and less than 1; set scheduler.factor"
            )
        if patience < 0:
            raise ConfigError(f"scheduler.patience is {patience}, expected at least 0; set scheduler.patience")
        self.monitor, self.mode, self.factor, self.patience = monitor, mode, factor, patience
        self.warmup = _at_least_one("warmup_steps", warmup_steps)
        self.best = math.inf if mode == "min" else -math.inf
        self.waited = self.reductions = 0
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """The rate of each group of parameters for the next step."""
        share = min(1.0, (self.last_epoch + 1) / self.warmup) * self.factor**self.reductions
        return [base * share for base in self.base_lrs]

    def observe(self, metrics: Mapping[str, Tensor]) -> None:
        """Takes note of a validation; a reduction holds from the next step on. A figure that is NaN is no better.

        Raises:
            ConfigError: ``monitor`` is not among the figures.
        """
        if self.monitor not in metrics:
            raise ConfigError(
                f"scheduler.monitor is {self.monitor!r}, expected one of {', '.join(sorted(metrics))}; "
                "set scheduler.monitor"
            )
        if self.last_epoch < self.warmup:
            return
        value = float(metrics[self.monitor])
        if value < self.best if self.mode == "min" else value > self.best:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.waited = 0
            self.reductions += 1
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ConfigError(
            f"scheduler.{name} is {value}, expected at least 1; set scheduler.{name} or trainer.max_steps"
        )
    return value
