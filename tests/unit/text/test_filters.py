"""Options of the filters, and where their limits lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.validation import check
from softsearch.errors import ConfigError
from softsearch.text.filters import Filters


def test_without_options_nothing_is_dropped() -> None:
    assert Filters().reason("same", "same") == ""
    assert Filters().reason("a", "b" * 999) == ""


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [("ab", "abcd", ""), ("abcd", "ab", ""), ("ab", "abcde", "unequal"), ("abcde", "ab", "unequal"), ("x", "x", "")],
)
def test_ratio_counts_characters_in_either_direction(src: str, tgt: str, reason: str) -> None:
    assert Filters(max_ratio=2).reason(src, tgt) == reason


@given(st.text(min_size=1), st.text(min_size=1))
def test_identity_is_exact(src: str, tgt: str) -> None:
    assert Filters(identical=True).reason(src, tgt) == ("untranslated" if src == tgt else "")


BAD = [
    ({"on_error": "ignore"}, "data.filters.on_error is 'ignore' .*, expected one of 'raise', 'skip'"),
    ({"identical": "yes"}, "data.filters.identical is 'yes' .*, expected true or false"),
    ({"duplicates": 1}, "data.filters.duplicates is 1 .*, expected true or false"),
    ({"max_ratio": 0.5}, "data.filters.max_ratio is 0.5 .*, expected a number of at least 1 or null"),
    ({"max_ratio": True}, "data.filters.max_ratio is True"),
    ({"max_ratio": float("nan")}, "data.filters.max_ratio is nan"),
    ({"max_ratio": "3"}, "data.filters.max_ratio is '3'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check({"_target_": name_of(Filters), **options}, "data.filters")
