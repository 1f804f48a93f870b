"""Options of the filters, and where their limits lie."""

import re
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.validation import check
from softsearch.data.scripts import letters_of
from softsearch.errors import ConfigError
from softsearch.text.corpus import read_raw
from softsearch.text.filters import Cleaner, CorpusReport, Filters
from softsearch.text.sentence_end import end_mark


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


@pytest.mark.parametrize(
    ("src", "tgt", "least", "reason"),
    [
        ("1,000.5 of 2026", "1.000,5 von 2026", 1, ""),
        ("no digit", "keine", 1, ""),
        ("in 1987", "im Jahr 1978", 1, "numbers"),
        ("in 1987", "im Jahr 1978", 0.5, ""),
        ("room 12", "Raum", 0.5, "numbers"),
        ("room 12", "Raum", 0, ""),
        ("in 1987", "१९८७ में", 1, ""),
        ("in 1987", "၁၉၈၇", 1, ""),
        ("in 1987", "في ١٩٨٧", 1, ""),
        ("in 1987", "١٩٧٨", 1, "numbers"),
        ("100,5", "１００．５", 1, ""),
    ],
)
def test_numbers_are_compared_by_their_digits(src: str, tgt: str, least: float, reason: str) -> None:
    assert Filters(min_numbers=least).reason(src, tgt) == reason


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("a) one", "a) eins", ""),
        ("(one)", "（一）", ""),
        ("(one)", "eins", "brackets"),
        ("[one]", "(eins)", "brackets"),
    ],
)
def test_brackets_are_counted_by_kind(src: str, tgt: str, reason: str) -> None:
    assert Filters(brackets=True).reason(src, tgt) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("the the the dog", "repeats"),
        ("a a a", ""),
        ("no no, never", ""),
        ("hahaha", ""),
        ("very very very", "repeats"),
    ],
)
def test_what_is_said_three_times_is_a_repetition(text: str, reason: str) -> None:
    assert Filters(repeats=True).reason(text, "x") == Filters(repeats=True).reason("x", text) == reason


@given(st.text(alphabet="ab ", max_size=30))
def test_a_repetition_is_what_the_pattern_finds_anywhere(text: str) -> None:
    assert bool(Filters(repeats=True).reason(text, "x")) == bool(re.search(r"(\S.{2,99})(?: *\1){2,}", text))


@pytest.mark.parametrize(
    ("lang", "text", "reason"),
    [
        ("de", "ein Mann 12", ""),
        ("de", "7:0", ""),
        ("de", "мужчина", "script"),
        ("ru", "мне IBM", ""),  # half
        ("ru", "на IBM", "script"),
        ("sr-Latn", "čovek", ""),
        ("sr", "čovek", "script"),
        ("ja", "スーパーの人", ""),
        ("zh_TW", "スーパー", "script"),
        ("pt_BR", "não", ""),
    ],
)
def test_letters_are_of_the_script_of_a_language(lang: str, text: str, reason: str) -> None:
    letters = letters_of("en", "data.src_lang"), letters_of(lang, "data.tgt_lang")
    assert Filters(min_script=0.5).reason("a", text, letters) == reason
    assert Filters(min_script=0.5).reason(text, "a", letters[::-1]) == reason


@pytest.mark.parametrize("lang", ["", "xx", "en-Abcd", "de+fr"])
def test_languages_without_a_script(lang: str) -> None:
    with pytest.raises(ConfigError, match=f"data.src_lang is {re.escape(repr(lang))}, whose script is unknown"):
        letters_of(lang, "data.src_lang")


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("He went.", "他走了。", ""),
        ('He said "no!"', "Er sagte „nein!“ ", ""),
        ("Who?", "Ποιος;", ""),
        ("Wait...", "Warte…", ""),
        ("A dog", "Ein Hund", ""),
        ("He went.", "Ging er?", "punctuation"),
        ("He went.", "Er ging", "punctuation"),
        ("3.5", "3,5", ""),
        ("He went.", "သူသွားသည်။", ""),  # Burmese
        ("He went.", "គាត់បានទៅ។", ""),  # Khmer
        ("Who?", "ማን ነው፧", ""),  # Ethiopic
        ("He went.", "ሄደ።", ""),
        ("He went.", "ཁོ་ཕྱིན།", ""),  # Tibetan
        ("He went.", "वह गया।", ""),  # danda
        ("He went.", "Նա գնաց։", ""),  # Armenian
        ("Who is it?", "Ո՞վ է։", ""),
        ("Go!", "Գնա՜։", ""),
        ("He went.", "وہ گیا۔", ""),
        ("Who?", "من؟\u200f", ""),
        ("He said:", "គាត់\u200bនិយាយ៖", ""),
        ("He went.", "ማን ነው፧", "punctuation"),
        ("He went.", "သူသွားသည်", "punctuation"),
        ("Who?", "वह गया।", "punctuation"),
    ],
)
def test_sentences_end_alike(src: str, tgt: str, reason: str) -> None:
    assert Filters(end_punctuation=True).reason(src, tgt) == Filters(end_punctuation=True).reason(tgt, src) == reason


def test_all_ends_of_sentences_in_unicode_have_a_kind() -> None:
    ends = regex.compile(r"[\p{Sentence_Terminal}&&\p{P}]", regex.V1)
    found = {char for char in map(chr, range(0x110000)) if ends.match(char)}
    assert len(found) > 130
    assert [char for char in found if end_mark(char) not in (".", "?", "!")] == []
    assert not any(map(end_mark, "a1,)-\u3001\u060c\u055d\u17d4"[:-1]))


def test_new_reasons_are_counts_of_the_report(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    src.write_text("ok\nroom 12\n(one)\nbla bla bla\n", encoding="utf-8")
    tgt.write_text("gut\nRaum\neins\nsagt er\n", encoding="utf-8")
    clean = Cleaner(src=src, tgt=tgt, filters=Filters(min_numbers=1, brackets=True, repeats=True))
    (raw,) = read_raw(src, tgt)
    report = CorpusReport(src=src, tgt=tgt, kept=1, **clean(raw).counts)
    assert report.findings() == {
        "dropped for numbers that do not match": 1,
        "dropped for unequal brackets": 1,
        "dropped for repetitions": 1,
    }


BAD = [
    ({"min_numbers": 2}, "data.filters.min_numbers is 2 .*, expected a number of at least 0 and at most 1 or null"),
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
