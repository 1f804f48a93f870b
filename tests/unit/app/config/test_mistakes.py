"""Mistakes are collected, and what was made is there or says why not."""

import pytest

from softsearch.app.config.mistakes import Mistakes
from softsearch.errors import ConfigError


def refuse(what: str) -> int:
    raise ConfigError(f"{what} is wrong; change it")


def test_all_mistakes_are_reported_together_and_each_once() -> None:
    mistakes = Mistakes()
    fine, first, *_ = [mistakes.attempt(int, "3"), *(mistakes.attempt(refuse, what) for what in ("a", "b", "a"))]
    assert (fine.made, fine.value()) == ([3], 3)
    assert not first.made
    with pytest.raises(ConfigError, match=r"^a is wrong; change it$"):
        first.value()
    with pytest.raises(ConfigError, match=r"2 options are wrong:\n  a is wrong; change it\n  b is wrong; change it"):
        mistakes.report()


def test_nothing_is_made_of_nothing() -> None:
    """None is a value: a part that is not set."""
    mistakes = Mistakes()
    assert mistakes.attempt(lambda: None).made == [None]
    mistakes.report()


def test_other_errors_are_bugs() -> None:
    with pytest.raises(ZeroDivisionError):
        Mistakes().attempt(lambda: 1 // 0)
