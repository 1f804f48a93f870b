"""Learning rates over time. Each is a factor of the optimizer's rate, 1 at the peak."""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

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


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ConfigError(
            f"scheduler.{name} is {value}, expected at least 1; set scheduler.{name} or trainer.max_steps"
        )
    return value
