"""Texts that look the same are read the same, and the places of their characters are found again."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.text.folding import TO_USUAL
from softsearch.text.reading import as_read

# Texts of characters that act on one another: marks, jamo, Indic vowels, half-width kana, look-alikes, spaces.
ODD = (
    "ae sS'\u2019\u0301\u0327\u0323\xad\u200b\u200d\ufeff\0\t\x07\u3000\u1100\u1161\u11a8\uac00\u3131\u09c7\u09be"
    "\ufb01\u2026\uff76\uff9e\u1e9b\u1fed\u03d3\u0643\u0640\u064a\u0654\u0219\u015f\u2212"
)
TEXTS = st.text(st.sampled_from(ODD)) | st.text()
PERSIAN = "\u06a9\u062a\u0627\u0628\u06cc"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["caf\u00e9", "cafe\u0301", "\u200bcaf\u00e9\u00a0\n", "caf\u00ade\u0301"], "caf\u00e9"),
        (["it's a-b", "it\u2019s\u2003 a\u2212b", "it\u02bcs a\u2011b", "it\uff07s\ta\uff0db"], "it's a-b"),
        (["an API", "an \uff21\uff30\uff29", "an\ufeff A\u200dP\u2060I"], "an API"),
        ([PERSIAN, "\u0643\u062a\u0640\u0627\u0628\u064a", "\ufedb\ufe98\ufe8e\ufe91\ufef2"], PERSIAN),
        (["\u0219\u021b", "\u015f\u0163", "s\u0327t\u0327", "s\u0326\u00adt\u0326"], "\u0219\u021b"),
        (["\ud55c", "\u1112\u1161\u11ab", "\ud558\u11ab"], "\ud55c"),
        (["\u30ac", "\uff76\uff9e", "\u30ab\u3099"], "\u30ac"),
        (["a\0b", "a\0\u200bb"], "a\0b"),
        (["", " \u200b\t"], ""),
    ],
)  # fmt: skip
def test_forms_of_a_text_are_read_as_the_usual_one(texts: list[str], expected: str) -> None:
    assert [as_read(text).text for text in texts] == [expected] * len(texts)


@given(TEXTS)
def test_reading_again_changes_nothing_and_every_place_is_found(text: str) -> None:
    read = as_read(text)
    assert as_read(read.text).text == read.text
    assert as_read(unicodedata.normalize("NFD", text)).text == as_read(unicodedata.normalize("NFC", text)).text
    spans = [read.span(at, at + 1) for at in range(len(read.text))]
    assert spans == sorted(spans)
    for char, (begin, end) in zip(read.text, spans, strict=True):
        assert begin < end
        assert char == " " or char in as_read(text[begin:end]).text


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("the  cafe\u0301s", "caf\u00e9", "cafe\u0301"),
        ("the traf\u00adfic", "traffic", "traf\u00adfic"),
        ("\ufb01ne", "f", "\ufb01"),
        ("\u3000an \uff21\uff30\uff29 ", "API", "\uff21\uff30\uff29"),
        ("a\u2026 b", "...", "\u2026"),
        ("plain text", "text", "text"),
    ],
)
def test_a_word_is_found_in_the_original(text: str, word: str, expected: str) -> None:
    read = as_read(text)
    at = read.text.index(word)
    begin, end = read.span(at, at + len(word))
    assert text[begin:end] == expected
    assert read.span(len(read.text), len(read.text)) == (len(text), len(text))


def test_look_alikes_keep_their_case() -> None:
    for char, usual in TO_USUAL.items():
        assert TO_USUAL.get(char.casefold(), char.casefold()) == usual.casefold()
