"""Texts that count as the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.text.same_text import hash_of, words_of

FORMS = {
    "cafe\u0301": "caf\u00e9",
    "\uff21\uff30\uff29  is\u00a0it": "api is it",
    "dri\u00adver\u200b": "driver",
    "\ufeff<2de> <from:en> A man.": "a man",
    "STRASSE": "stra\u00dfe",
    "\u4f60 \u597d\uff01": "\u4f60\u597d",
}


@pytest.mark.parametrize(("text", "same"), FORMS.items())
def test_forms_of_one_text(text: str, same: str) -> None:
    assert words_of(text) == words_of(same)
    assert hash_of(text) == hash_of(same)


@given(st.text(st.characters(max_codepoint=126), max_size=20).map("{} end".format))
def test_the_short_way_for_ascii_is_the_same(text: str) -> None:
    assert words_of(text) == words_of(f"{text}\u200b")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u0915\u093f", "\u0915\u0940"),
        ("\u0e01\u0e34", "\u0e01\u0e35"),
        ("?", "!"),
        ("a b", "ab"),
        ("a\u0300", "a"),
        ("1 2", "2 1"),
    ],
)
def test_other_texts(one: str, other: str) -> None:
    """Vowel signs are parts of words; punctuation alone is compared as it is."""
    assert hash_of(one) != hash_of(other)
    assert words_of(" \t") == ()
