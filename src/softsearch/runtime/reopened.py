"""Objects that another process makes again, from the same arguments, when they are pickled."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from softsearch.runtime.bundle import Bundle

_FILES = ("bundle", "language_model", "rescore", "glossary")  # arguments that name files or folders


class Reopened:
    """Base of classes that hold what cannot be pickled, such as sessions: their pickle has the arguments alone.

    A process of joblib, Spark or multiprocessing then opens the bundles' folders again, which have to be there.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remembers the arguments, with bundles as their folders."""
        made = super().__new__(cls)
        named = {name: _absolute(value) if name in _FILES else value for name, value in kwargs.items()}
        made._given = tuple(map(_absolute, args)), named
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Describes how to make the object again."""
        return _make, (type(self), *self._given)


def _make(cls: type[Reopened], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Reopened:
    return cls(*args, **kwargs)


def _absolute(value: Any) -> Any:
    """A bundle as its folder, and files and folders by absolute paths, also in lists."""
    if isinstance(value, Bundle):
        value = value.path
    if isinstance(value, Path | str):
        return Path(value).absolute()
    return [_absolute(each) for each in value] if isinstance(value, list | tuple) else value
