"""Learning rate schedules, as factors of the optimizer's rate; 1 at the peak."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from softsearch.errors import ConfigError
from softsearch.ranges import AtLeastOne, Count, Range, Rate


class Timed:
    """Base of the schedules, which follow ``trainer.max_time``.

    The share of the time that has passed counts as the same share of the run's steps, if that is more. So warm-up and
    decay end with the run, whether its steps or its time end first.
    """

    last_epoch: int  # steps, as PyTorch names it
    warmup: int
    time_steps = 0.0  # the steps for which the time stands that has passed

    def spend(self, share: float, steps: float) -> None:
        """Notes the share of the time that has passed; ``steps`` are those of the run, or infinite.

        Without a limit of steps, the warm-up takes at most a tenth of the time.
        """
        self.time_steps = share * (steps if math.isfinite(steps) else 10 * self.warmup)

    @property
    def position(self) -> float:
        """Returns the steps taken, or those for which the time stands."""
        return max(self.last_epoch, self.time_steps)


class Schedule(Timed, LambdaLR):
    """A factor of the step."""

    def __init__(self, optimizer: Optimizer, factor: Callable[[float], float], warmup_steps: int = 1) -> None:
        self.warmup = warmup_steps
        super().__init__(optimizer, lambda _: factor(self.position))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting; the options stay those of this run, and the time is counted elsewhere."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k not in ("warmup", "time_steps")})


def constant(optimizer: Optimizer, *, warmup_steps: AtLeastOne = 1) -> Schedule:
    """Linear to the peak at ``warmup_steps``, then constant."""
    return Schedule(optimizer, lambda step: min(1.0, (step + 1) / warmup_steps), warmup_steps)


def inverse_sqrt(optimizer: Optimizer, *, warmup_steps: AtLeastOne) -> Schedule:
    """Linear to the peak at ``warmup_steps``, then times sqrt(warmup_steps / step) (Vaswani et al. 2017, 5.3)."""
    return Schedule(
        optimizer, lambda step: min((step + 1) / warmup_steps, (warmup_steps / (step + 1)) ** 0.5), warmup_steps
    )


def linear_decay(
    optimizer: Optimizer, *, warmup_steps: AtLeastOne, decay_from: Rate, total_steps: AtLeastOne
) -> Schedule:
    """Linear to the peak at ``warmup_steps``, constant, linear to zero after a share ``decay_from`` of the steps."""

    def factor(step: float) -> float:
        left = (total_steps - step) / (total_steps * (1 - decay_from))
        return max(0.0, min(1.0, (step + 1) / warmup_steps, left))

    return Schedule(optimizer, factor, warmup_steps)


def halving(optimizer: Optimizer, *, start: Count, every: AtLeastOne, warmup_steps: AtLeastOne = 1) -> Schedule:
    """Linear to the peak at ``warmup_steps``, constant, halved at step ``start`` and then every ``every`` steps.

    Luong et al. 2015 (section 4.1) halve it every epoch, Sutskever et al. 2014 (section 3.4) every half epoch.
    """

    def factor(step: float) -> float:
        return min(1.0, (step + 1) / warmup_steps) * (1.0 if step < start else 0.5 ** (1 + (step - start) // every))

    return Schedule(optimizer, factor, warmup_steps)


def cosine(optimizer: Optimizer, *, warmup_steps: AtLeastOne, total_steps: AtLeastOne, floor: Rate = 0.0) -> Schedule:
    """Linear to the peak at ``warmup_steps``, then half a cosine wave down to ``floor`` at ``total_steps``.

    Loshchilov & Hutter 2017 (arXiv:1608.03983), equation 5, without restarts.
    """

    def factor(step: float) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = min(1.0, (step + 1 - warmup_steps) / max(1, total_steps + 1 - warmup_steps))
        return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2

    return Schedule(optimizer, factor, warmup_steps)


class Plateau(Timed, LRScheduler):
    """Linear to the peak at ``warmup_steps``, then multiplied by ``factor`` whenever validation stops improving.

    Like ``torch.optim.lr_scheduler.ReduceLROnPlateau`` without a threshold, but that class has no warm-up, and
    Lightning updates it after writing the checkpoint of a validation, so a resumed run would forget that validation.

    Args:
        patience: validations in a row without a new best value; one more reduces the rate.
        warmup_steps: step of the peak; validations before it do not count.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        monitor: str = "val/loss",
        mode: Literal["min", "max"] = "min",
        factor: Annotated[float, Range(0, 1, open_low=True, open_high=True)] = 0.5,
        patience: Count = 2,
        warmup_steps: AtLeastOne = 1,
    ) -> None:
        self.monitor, self.mode, self.factor, self.patience = monitor, mode, factor, patience
        self.warmup = warmup_steps
        self.best = math.inf if mode == "min" else -math.inf
        self.waited = self.reductions = 0
        super().__init__(optimizer)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting; the options stay those of this run."""
        options = ("monitor", "mode", "factor", "patience", "warmup", "time_steps")
        super().load_state_dict({name: value for name, value in state_dict.items() if name not in options})

    def get_lr(self) -> list[float | Tensor]:
        """Returns the rates of all parameter groups for the next step."""
        share = min(1.0, (self.position + 1) / self.warmup) * self.factor**self.reductions
        return [base * share for base in self.base_lrs]

    def observe(self, metrics: Mapping[str, Tensor]) -> None:
        """Updates the rate for the next step after a validation. NaN is never better.

        Raises:
            ConfigError: ``monitor`` is not among the metrics.
        """
        if self.monitor not in metrics:
            raise ConfigError(
                f"scheduler.monitor is {self.monitor!r}, expected one of {', '.join(sorted(metrics))}; "
                "set scheduler.monitor"
            )
        if self.position < self.warmup:
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
