"""Ranges of numbers for type annotations: ``def __init__(self, *, hidden_dim: Size, lr: Positive = 0.1)``.

``softsearch.app.config.validation`` checks configs against annotations before anything is built, and
``softsearch.search.options`` the options of a search.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
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
        """Tells whether ``value`` is in the range; NaN is in none."""
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
MIN_SRC_TOKENS, MAX_SRC_TOKENS = 8, 1 << 14  # of a sentence that a bundle translates whole
AtLeastOne = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0, 2**32 - 1)]  # as NumPy and Lightning accept
Positive = Annotated[float, Range(0, open_low=True)]
NotNegative = Annotated[float, Range(0)]
Rate = Annotated[float, Range(0, 1, open_high=True)]  # of dropout, label smoothing, ...
Share = Annotated[float, Range(0, 1)]

_MAPPINGS = (dict, Mapping)
_LISTS = (list, tuple, Collection, Iterable, Sequence)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63  # that C can hold


_SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {  # description, and check
    Any: ("anything", lambda _: True),
    type(None): ("null", lambda value: value is None),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", _is_int),
    float: ("a number", lambda value: _is_int(value) or (isinstance(value, float) and math.isfinite(value))),
    str: ("text", lambda value: isinstance(value, str)),
    Path: ("a path", lambda value: isinstance(value, str) and bool(value)),
}


def fits(value: Any, hint: Any) -> bool:
    """Tells whether a plain value of YAML or JSON fits an annotation; a node with ``_target_`` fits any other class."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = (limit for limit in hint.__metadata__ if isinstance(limit, Range))
        return fits(value, arguments[0]) and all(value in limit for limit in limits)
    if origin in (Union, UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(value == argument and type(value) is type(argument) for argument in arguments)
    if hint in _SCALARS:
        return _SCALARS[hint][1](value)
    kind = origin if inspect.isclass(origin) else hint
    if not inspect.isclass(kind) or kind in (object, complex):
        return True
    if kind in _MAPPINGS:
        return isinstance(value, Mapping) and all(fits(inner, arguments[1]) for inner in value.values() if arguments)
    if kind in _LISTS:
        return isinstance(value, list | tuple) and _all_fit(value, arguments)
    return isinstance(value, Mapping) and "_target_" in value  # of any other class


def _all_fit(values: Sequence[Any], arguments: tuple[Any, ...]) -> bool:
    if len(arguments) == 1 or arguments[1:] == (...,):
        return all(fits(value, arguments[0]) for value in values)
    return not arguments or (len(values) == len(arguments) and all(map(fits, values, arguments)))


def in_words(hint: Any, value: Any = None) -> str:
    """A description of an annotation that ``value`` does not fit."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if words := [text for text in hint.__metadata__ if isinstance(text, str)]:
            return str(words[0])
        return " ".join([in_words(arguments[0]), *(str(x) for x in hint.__metadata__ if isinstance(x, Range))])
    if origin is Literal:
        return "one of " * (len(arguments) > 1) + ", ".join(map(repr, arguments))
    if origin in (Union, UnionType):
        return " or ".join(in_words(argument, value) for argument in arguments)
    if hint in (int, float) and type(value) in (int, float) and not abs(value) < 2**63:
        return "a finite number of at most 64 bits"
    if hint in _SCALARS:
        return _SCALARS[hint][0]
    kind = origin if inspect.isclass(origin) else hint
    if kind in _MAPPINGS:
        return "a section of keys and values"
    if kind in _LISTS:
        fixed = len(arguments) > 1 and ... not in arguments
        items = ", ".join(map(in_words, arguments if fixed else arguments[:1]))
        return f"a list of {items}" if fixed else f"a list, each {items}" if items else "a list"
    return f"a section with a _target_, a {getattr(kind, '__name__', kind)}"
