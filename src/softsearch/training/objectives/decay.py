"""How often the decoder reads the reference, by step: section 2.4 of Bengio et al. 2015 (arXiv:1506.03099)."""

import math
from dataclasses import dataclass
from typing import Protocol

from softsearch.errors import ConfigError


class Decay(Protocol):
    """Called with the number of steps taken, i, returns epsilon_i; 1 and more mean always."""

    def __call__(self, step: int) -> float:
        """The probability that a word is the reference's."""
        ...


@dataclass(frozen=True, kw_only=True)
class Linear:
    """epsilon_i = max(floor, k - c i).

    Args:
        k: offset; more than 1 puts the beginning off.
        c: slope, for each step.
        floor: the least share of the reference.

    Raises:
        ConfigError: a value is out of range.
    """

    k: float = 1.0
    c: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        _require("k", self.k, "more than 0", self.k > 0)
        _require("c", self.c, "at least 0", self.c >= 0)
        _require("floor", self.floor, "at least 0 and less than 1", 0 <= self.floor < 1)

    def __call__(self, step: int) -> float:
        """See :class:`Decay`."""
        return max(self.floor, self.k - self.c * step)


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """epsilon_i = k ** i.

    Args:
        k: share that is left after each step.

    Raises:
        ConfigError: k is out of range.
    """

    k: float

    def __post_init__(self) -> None:
        """Checks the range."""
        _require("k", self.k, "more than 0 and less than 1", 0 < self.k < 1)

    def __call__(self, step: int) -> float:
        """See :class:`Decay`."""
        return self.k**step


@dataclass(frozen=True, kw_only=True)
class InverseSigmoid:
    """epsilon_i = k / (k + exp(i / k)).

    Args:
        k: the larger, the later; one half after k ln k steps.

    Raises:
        ConfigError: k is out of range.
    """

    k: float

    def __post_init__(self) -> None:
        """Checks the range."""
        _require("k", self.k, "at least 1", self.k >= 1)

    def __call__(self, step: int) -> float:
        """See :class:`Decay`."""
        return self.k / (self.k + math.exp(min(step / self.k, 700.0)))  # exp(710) overflows


def _require(name: str, value: float, expected: str, holds: bool) -> None:
    if not holds:
        raise ConfigError(f"method.decay.{name} is {value}, expected {expected}; set method.decay.{name}")
