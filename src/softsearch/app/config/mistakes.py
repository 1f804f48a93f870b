"""The mistakes of several parts of a config, found one by one and reported together."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from softsearch.errors import ConfigError

_Made = TypeVar("_Made")


class Attempt(Generic[_Made]):
    """What was made, unless something was wrong."""

    def __init__(self, made: Sequence[_Made], error: ConfigError | None = None) -> None:
        self.made, self.error = made, error  # either one thing that was made, or the error

    def value(self) -> _Made:
        """Returns what was made.

        Raises:
            ConfigError: nothing was.
        """
        if self.error is not None:
            raise self.error
        return self.made[0]


class Mistakes:
    """The mistakes in several parts of a config, to be reported together."""

    def __init__(self) -> None:
        self._errors: list[ConfigError] = []

    def attempt(self, make: Callable[..., _Made], *arguments: Any) -> Attempt[_Made]:
        """Calls ``make``, and notes the error if it refuses its arguments; ``report`` raises it."""
        try:
            return Attempt([make(*arguments)])
        except ConfigError as error:
            self._errors.append(error)
            return Attempt([], error)

    def report(self) -> None:
        """Raises if there were any mistakes.

        Raises:
            ConfigError: with all of them.
        """
        messages = [*dict.fromkeys(map(str, self._errors))]
        if len(messages) == 1:
            raise self._errors[0]
        if messages:
            raise ConfigError("\n  ".join([f"{len(messages)} options are wrong:", *messages]))
