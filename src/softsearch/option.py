"""The one description of an option: ``Option`` in the annotation of a frozen dataclass's field.

A search's or a stage's options are the fields of its dataclass, each with a type, a range and an ``Option``, from which
are made: flags and ``--help`` (``softsearch.runtime.flags``); fields of requests, and of /docs
(``softsearch.extras.serve.fields``); the tables of docs, and the comments of configs/search (``tests.option_tables``).
"""

import math
from dataclasses import MISSING, dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from softsearch.errors import ConfigError
from softsearch.ranges import Range, fits, in_words


@dataclass(frozen=True, eq=False)  # examples may be lists
class Option:
    """The description of an option for users; its type and range are in the same annotation.

    Args:
        help: what it does, in a phrase without a full stop that begins in lower case.
        example: a value, as in JSON; None if there is none worth showing.
        recommended: the maximum in a bundle: an untrusted one must not cost a host unlimited time.
        metavar: the name of the value in ``--help``, by default N, X or its choices.
    """

    help: str
    example: Any = None
    recommended: float = math.inf
    metavar: str = ""

    @property
    def sentence(self) -> str:
        """The description as a sentence."""
        return f"{self.help[:1].upper()}{self.help[1:]}."


class CheckedOptions:
    """A base of frozen dataclasses whose fields, the options, are checked against their annotations.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    hints: ClassVar[dict[str, Any]] = {}  # the annotations of the options by name
    section: ClassVar[str] = ""  # before the names of options in messages, as in "search."

    def __init_subclass__(cls) -> None:
        every = get_type_hints(cls, include_extras=True)
        cls.hints = {name: hint for name, hint in every.items() if get_origin(hint) is not ClassVar}

    def __post_init__(self) -> None:
        for name, hint in self.hints.items():
            value = getattr(self, name)
            if value is not getattr(type(self), name, MISSING):  # not the default, which is valid
                object.__setattr__(self, name, check_option(name, value, hint, self.section))


def option(hint: Any) -> Option:
    """The description in an option's annotation, the outermost of several."""
    described = (each for each in reversed(getattr(hint, "__metadata__", ())) if isinstance(each, Option))
    return next(described, Option(""))


def kind_of(hint: Any) -> tuple[Any, Range | None]:
    """The type or the choices in an option's annotation, without None, and the range; of a list, those of an item."""
    limits = None
    while get_origin(hint) not in (None, Literal):
        limits = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Range)), limits)
        hint = get_args(hint)[0]
    return hint, limits


def is_list(hint: Any) -> bool:
    """Tells whether an option has several values."""
    while get_origin(hint) in (Annotated, Union, UnionType):
        hint = get_args(hint)[0]
    return get_origin(hint) in (list, tuple)


def check_option(name: str, value: Any, hint: Any, section: str = "search.") -> Any:
    """Returns the value of an option, which fits its annotation; NumPy's scalars become Python's.

    Raises:
        ConfigError: the value does not fit.
    """
    value = plain(value)
    if not fits(value, hint):
        expect(False, name, value, in_words(hint, value), section)
    return value


def plain(value: Any) -> Any:
    """Returns a scalar of NumPy as one of Python, also in a list; everything else unchanged."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def expect(holds: bool, name: str, value: object, expected: str, section: str = "search.") -> None:
    """Refuses the value of an option unless a condition holds.

    Raises:
        ConfigError: the condition does not hold.
    """
    if not holds:
        shown = "missing" if value is None else repr(list(value) if isinstance(value, tuple) else value)[:80]
        raise ConfigError(f"{section}{name} is {shown}, expected {expected}; change {name}")
