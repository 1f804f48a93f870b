"""Ranges of numbers for type annotations: ``def __init__(self, *, hidden_dim: Size, lr: Positive = 0.1)``.

:mod:`softsearch.app.config.validation` checks configs against them before anything is built.
"""

import math
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """The finite numbers from ``low`` to ``high``.

    Args:
        low: the minimum.
        high: the maximum.
        open_low: ``low`` itself is excluded.
        open_high: ``high`` itself is excluded.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        """Whether ``value`` is in the range; NaN is in none."""
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        """The range in words, as in "of at least 1 and at most 1024"."""
        low = f"more than {self.low}" if self.open_low else f"at least {self.low}"
        high = f"less than {self.high}" if self.open_high else f"at most {self.high}"
        limits = [words for words, limit in ((low, self.low), (high, self.high)) if math.isfinite(limit)]
        return f"of {' and '.join(limits)}"


Size = Annotated[int, Range(1, 2**20)]  # of a layer
Depth = Annotated[int, Range(1, 1024)]  # layers
Count = Annotated[int, Range(0)]
AtLeastOne = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0, 2**32 - 1)]  # as NumPy and Lightning accept
Positive = Annotated[float, Range(0, open_low=True)]
NotNegative = Annotated[float, Range(0)]
Rate = Annotated[float, Range(0, 1, open_high=True)]  # of dropout, label smoothing, ...
Share = Annotated[float, Range(0, 1)]
