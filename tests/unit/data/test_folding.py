"""Text that looks the same has the same ids, and text of which the vocabulary lacks nothing has those of before."""

import unicodedata
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.data.sentencepiece_file import Piece, with_folding, with_pieces, without_folding
from softsearch.text.folding import folding_rules
from softsearch.text.reading import as_read
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import UNK

LINES = ["twenty-one years ago.", "um f\u00fcnf uhr zw\u00f6lf", "five pounds... 12", "five fl\u00f6he"]
SAME = {  # what looks the same, by what the corpus has
    "twenty-one years ago.": [
        "\ufefftwenty-one years ago.", "\u200etwenty-one years\u200f ago.", "twe\u00adnty\u200b-one yea\u200crs ago.",
        "twenty-one\u00a0years\u202fago.", "twenty-one\tyears\u3000ago.\u2028",
        "\u2066twenty-one\u2069 years\ufe0f ago.",
        "\uff54\uff57\uff45\uff4e\uff54\uff59\uff0d\uff4f\uff4e\uff45 years ago\uff0e", "twenty\u2011one years ago.",
        "\x07twenty-one\x1fyears\x0bago.", "\u2060twenty\u2010one\u180e years\U000e0001 ago.",
    ],
    "um f\u00fcnf uhr zw\u00f6lf": ["um fu\u0308nf uhr zwo\u0308lf", "u\u00adm f\u00fcnf\u2009uhr zwo\u0308lf\u200d"],
    "five pounds... 12": ["\ufb01ve pounds\u2026 \uff11\uff12", "five pounds\u2025. 1\u20602"],
    "five fl\u00f6he": ["\ufb01ve \ufb02o\u0308he"],
}  # fmt: skip


def folding(lines: list[str], kind: Kind = "char") -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """A tokenizer trained on lines, and as models have it."""
    plain = train_tokenizer(lines * 3, kind=kind, vocab_size=200)
    return plain, SentencePieceTokenizer(with_folding(plain.model))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_text_that_looks_the_same_has_the_same_ids(kind: Kind) -> None:
    plain, ours = folding(LINES, kind)
    for line, others in SAME.items():
        assert ours.encode(line) == plain.encode(line)
        assert UNK not in ours.encode(line)
        for other in others:
            assert UNK in plain.encode(other)
            assert ours.encode(other) == ours.encode(line), ascii(other)
            assert not ours.unknown(other)
    backwards = SentencePieceTokenizer(ours.model, reverse=True)
    assert backwards.encode(SAME["five fl\u00f6he"][0]) == ours.encode("five fl\u00f6he")[::-1]


@pytest.mark.parametrize(
    ("line", "others"),
    [
        (
            "\u1ead",
            ["a\u0323\u0302", "a\u0302\u0323", "\u1ea1\u0302", "\u00e2\u0323"],
        ),  # Vietnamese, marks in any order
        ("\u00e2\u0323", ["\u1ead"]),  # as code page 1258 has it
        ("a\u0323\u0302", ["\u1ead"]),
        ("e\u0301t\u00e9", ["\u00e9te\u0301"]),  # both forms: each stays
        ("\u00e5\u03a9", ["a\u030a\u2126"]),
        ("\u30ac\u30d1\u30a2", ["\u30ab\u3099\u30cf\u309a\uff71", "\uff76\uff9e\uff8a\uff9f\uff71"]),
        ("\ud55c\uae00", ["\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud558\u11ab\uadf8\u11af"]),
        ("\u1112\u1161\u11ab", ["\ud55c"]),
        ("\u0643\u062a\u0627\u0628", ["\ufedb\ufe98\ufe8e\ufe8f"]),  # Arabic letters by their place, of a PDF
        ("\u8c48", ["\uf900"]),
        ("it's 5-3", ["it\u2019s 5\u22123", "it\u02bcs 5\u20103", "it\uff07s 5\uff0d3", "it\u00b4s 5\ufe633"]),
        ("l\u2019eau", ["l'eau", "l\uff07eau"]),
        ("say \u201cno\u201d", ['say \u201cno"']),
        ("\u0219i \u021bara", ["\u015fi \u0163ara", "s\u0327i t\u0327ara", "s\u0326i t\u0326ara"]),
        ("\u0163ara", ["\u021bara", "t\u0326ara", "t\u0327ara"]),
        ("\u06a9\u06cc", ["\u0643\u064a", "\u0643\u0640\u0649", "\ufedb\ufef2", "\ufb90\ufbfd"]),
        ("\u0643\u064a", ["\u06a9\u06cc", "\u06a9\u0640\u0640\u06cc"]),
        ("\u0627 \u06f1\u06f5", ["\u0627 \u0661\u0665"]),
        ("\u05d0-\u05d1'", ["\u05d0\u05be\u05d1\u05f3"]),
        ("\u301c", ["~", "\uff5e"]),
        ("'n hond", ["\u0149 hond", "\u2019n hond"]),
        ("\u0e01\u0e33", ["\u0e01\u0e4d\u0e32"]),  # Thai's am, in two parts
    ],
)
def test_forms_of_a_letter_are_the_one_of_the_vocabulary(line: str, others: list[str]) -> None:
    plain, ours = folding([line])
    for other in others:
        expected = other if plain.vocabulary().keys() >= set(other) else line
        assert ours.encode(other) == plain.encode(expected), ascii(other)


@pytest.mark.parametrize(
    ("line", "other", "unknown"),
    [
        ("x2 ab12", "x\u00b2", "\u00b2"),
        ("H2O", "H\u2082O", "\u2082"),
        ("1 2 3", "\u2460", "\u2460"),
        ("1/2 3", "\u00bd", "\u00bd"),
        ("1\u20442", "\u00bd", "\u00bd"),
        ("x TM", "x\u2122", "\u2122"),
        ("acp", "\u0430", "\u0430"),  # Cyrillic
        ("a-b", "a\u2014b", "\u2014"),
        ("A", "\U0001d400", "\U0001d400"),
    ],
)
def test_what_looks_otherwise_stays_unknown(line: str, other: str, unknown: str) -> None:
    _, ours = folding([line])
    assert ours.unknown(other) == [unknown]
    assert as_read(other).text == other


def test_white_space_and_ignorable_characters_by_their_properties() -> None:
    _, ours = folding(["ab"])
    ignorable = {*range(0xFE00, 0xFE10), 0x115F, 0x17B4, 0x3164, 0xFFA0, 0x1D173, 0xE0020, 0xE01EF}
    formats = {code for code in range(0x20000) if unicodedata.category(chr(code)) == "Cf"}
    shown = {code for code in formats if 0x600 <= code < 0x900 and code != 0x61C}
    shown |= {0xFFF9, 0xFFFA, 0xFFFB, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}  # with a shape of their own
    for code in (formats | ignorable) - shown:
        assert ours.encode(f"{chr(code)}a{chr(code)}b") == ours.encode("ab"), hex(code)
    for code in shown:
        assert UNK in ours.encode(f"a{chr(code)}b"), hex(code)
    for space in filter(str.isspace, map(chr, range(0x3001))):
        assert ours.encode(f"{space}a{space} {space}b{space}") == ours.encode("a b"), ascii(space)


def test_what_the_vocabulary_has_stays_as_it_is() -> None:
    odd = [
        "a\u00a0b \u0645\u06cc\u200c\u062e",
        "e\u0301 \u00e9",
        "\uff11\ufb01 \u2026",
        "\u0e01\u200b \ufeff\u00ad",
        "\U0001f469\u200d\U0001f680",
    ]
    for kind in get_args(Kind):
        plain, ours = folding(odd, kind)
        for line in odd:
            assert ours.encode(line) == plain.encode(line)
            assert ours.decode(ours.encode(line)) == plain.decode(plain.encode(line))


@settings(max_examples=25)
@given(
    st.sets(
        st.sampled_from(
            "atTsșşțŢ\u0326\u0327éeE\u0301'\u2019\u201d\"-\u2212\u0643\u06a9\u064a\u06cc\u0649fi\ufb01\u2026."
        )
    )
)
def test_rules_write_what_is_known_and_no_other_rule_replaces(known: set[str]) -> None:
    rules = folding_rules(known)
    assert rules.keys().isdisjoint(rules.values())
    assert all(not known >= set(text) for text in rules)
    for text, replacement in rules.items():
        one, other = (as_read(each).text.casefold().replace("\u0649", "\u06cc") for each in (text, replacement))
        assert one == other, ascii(text)


@pytest.mark.parametrize(
    ("line", "other", "expected"),
    [
        ("\u00fcber", "U\u0308BE\uff32\u00ad ", "\u00fcber"),
        ("stra\u00dfe i", "STRA\u1e9eE I", "stra\u00dfe i"),
        ("\u03bb\u03cc\u03b3\u03bf\u03c3", "\u039b\u039f\u0301\u0393\u039f\u03a3", "\u03bb\u03cc\u03b3\u03bf\u03c3"),
        ("J july", "JULY", "July"),  # J is in the vocabulary
        ("ab", "\u0410b", "\u0410b"),  # Cyrillic
        ("I\u0130 i\u0131", "I\u0130", "I\u0130"),
    ],
)
def test_capital_letters_that_the_vocabulary_lacks_are_small(line: str, other: str, expected: str) -> None:
    plain, ours = folding([line])
    assert ours.encode(other) == plain.encode(expected)


def test_what_the_vocabulary_lacks_is_named() -> None:
    _, ours = folding(LINES)
    assert ours.unknown("five \u6f22\u00ad\u5b57 cafe\u0301 %%") == ["\u6f22", "\u5b57", "c", "\u0301", "%", "%"]
    _, words = folding(LINES, "word")
    assert words.unknown("five\u00a0caf\u00e9s uhr now") == ["caf\u00e9s", "now"]
    assert SentencePieceTokenizer(words.model, reverse=True).unknown("a uhr b") == ["a", "b"]


def test_the_rules_follow_the_pieces_and_can_be_taken_away() -> None:
    plain, ours = folding(["ab"])
    grown = with_pieces(ours.model, [Piece("a", 0.0), Piece("\u00a0", 0.0), Piece("\u2581", 0.0)], "x")
    assert SentencePieceTokenizer(with_folding(grown)).encode("a\u00a0a") == [6, 4, 5, 4]
    assert with_folding(ours.model) == ours.model
    assert without_folding(ours.model) == without_folding(plain.model) == plain.model
