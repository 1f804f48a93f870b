"""Ranges of numbers for type annotations: ``def __init__(self, *, hidden_dim: Size, lr: Positive = 0.1)``.

:mod:`softsearch.app.config.validation` checks configs against them before anything is built.
"""

import math
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin


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

_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation of numbers, text, choices and tuples; NaN and infinity are no numbers."""
    arguments, origin = get_args(hint), get_origin(hint)
    if origin is Annotated:
        limits = [limit for limit in hint.__metadata__ if isinstance(limit, Range)]
        return fits(value, arguments[0]) and all(value in limit for limit in limits)
    if origin in (Union, UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(value == argument and type(value) is type(argument) for argument in arguments)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(item, arguments[0]) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    return type(value) is hint


def in_words(hint: Any) -> str:
    """What :func:`fits` an annotation, as in "a whole number of at least 1"."""
    arguments, origin = get_args(hint), get_origin(hint)
    if origin is Annotated:
        return " ".join(
            [in_words(arguments[0]), *(str(limit) for limit in hint.__metadata__ if isinstance(limit, Range))]
        )
    if origin in (Union, UnionType):
        return " or ".join(in_words(argument) for argument in arguments if argument is not NoneType)
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    return f"a list, each {in_words(arguments[0])}" if origin is tuple else _WORDS[hint]
