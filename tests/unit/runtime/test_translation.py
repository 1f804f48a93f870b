"""Splitting of long text: at good breaks, without loss, and every part fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.runtime.translation import split_text


@given(text=st.text(alphabet="ab .,!?\u3002\t\u00e9\U0001f600", max_size=300), most=st.integers(1, 50))
def test_parts_fit_and_lose_nothing_but_white_space(text: str, most: int) -> None:
    parts = split_text(text, lambda part: len(part) <= most)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part and part == part.strip() and len(part) <= most for part in parts)


@pytest.mark.parametrize(
    ("text", "most", "parts"),
    [
        ("It rains. We stay in, and read on.", 30, ["It rains.", "We stay in, and read on."]),
        ("when it rains, we stay in and read", 30, ["when it rains,", "we stay in and read"]),
        ("one two three four", 10, ["one two", "three four"]),
        ("\u5929\u6c17\u3002\u96e8\u3067\u3059", 4, ["\u5929\u6c17\u3002", "\u96e8\u3067\u3059"]),
        ("abcdefgh", 4, ["abcd", "efgh"]),
        ("no need", 30, ["no need"]),
        ("   ", 1, []),
        ("", 1, []),
    ],
)
def test_the_strongest_break_near_the_middle_is_taken(text: str, most: int, parts: list[str]) -> None:
    assert split_text(text, lambda part: len(part) <= most) == parts


def test_a_single_character_is_never_cut() -> None:
    assert split_text("ab", lambda part: False) == ["a", "b"]
