"""Checks of option values, each with a message that says the key, the value, what was expected and what to do."""

from collections.abc import Collection
from difflib import get_close_matches

from softsearch.errors import ConfigError


def require_choice(key: str, value: object, choices: Collection[str]) -> None:
    """Checks that ``value`` is one of ``choices``.

    Raises:
        ConfigError: it is not; the message names the nearest choice.
    """
    if isinstance(value, str) and value in choices:
        return
    near = get_close_matches(str(value).lower(), list(choices), n=1, cutoff=0.4)
    advice = f"did you mean {near[0]!r}?" if near else f"change {key}"
    raise ConfigError(f"{key} is {value!r}, expected one of {', '.join(sorted(choices))}; {advice}")


def require_int(key: str, value: object, *, at_least: int) -> None:
    """Checks that ``value`` is an integer (booleans are not) and not below ``at_least``.

    Raises:
        ConfigError: it is of another type or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ConfigError(f"{key} is {value!r}, expected an integer of at least {at_least}; change {key}")


def require_share(key: str, value: object) -> None:
    """Checks that ``value`` is a number from 0 to 1.

    Raises:
        ConfigError: it is of another type or out of range.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ConfigError(f"{key} is {value!r}, expected a number from 0 to 1; change {key}")


def require_bool(key: str, value: object) -> None:
    """Checks that ``value`` is true or false.

    Raises:
        ConfigError: it is of another type.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{key} is {value!r}, expected true or false; change {key}")
