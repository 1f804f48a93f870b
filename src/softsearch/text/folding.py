"""Rules that replace characters a vocabulary lacks with characters it has, if both look the same.

Pasted text has no-break spaces, zero-width characters, decomposed accents or full-width letters where the training text
had plain ones. Capital letters become small ones where the vocabulary has those alone, as one of lower-cased text. A
rule replaces a character, or a letter and its marks, and always contains a character that the vocabulary lacks: no
other text changes. A model's rules are data in its file, so readers need no Unicode tables.
``softsearch.text.reading`` has the same forms without a vocabulary, for whatever compares texts.
"""

import unicodedata
from collections.abc import Iterator, Set
from functools import cache
from itertools import chain
from typing import Any

FOLDING = "folding"  # name of the normaliser with these rules in a SentencePiece model
# Default_Ignorable_Code_Point of the Unicode character database, which Python's unicodedata lacks, without the 3,600
# unassigned code points at its end.
_IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE01EF),
)  # fmt: skip
_CONTROLS = ((0x01, 0x1F), (0x7F, 0x9F))  # NUL cannot be in a rule
# Compatibility forms that look like the original: full-width letters, ligatures, an ellipsis, positional Arabic
# letters; not superscripts, circled digits and fractions.
_COMPATIBLE_FORMS = (
    "<wide>", "<narrow>", "<small>", "<noBreak>", "<compat>", "<isolated>", "<initial>", "<medial>", "<final>",
)  # fmt: skip
# Characters that keyboards and word processors write for one another, and that look alike, but that no Unicode
# normalisation equates. The first of a row is the usual one. Letters of different scripts are not in one row.
_ROWS = (
    "'\u2019\u2018\u201b\u02bc\u02bb\u02b9\ua78c\u2032\xb4\u05f3\u055a",
    '"\u201d\u201c\u201f\u2033\u05f4',
    "-\u2010\u2011\u2012\u2212\u02d7\u2043\u05be",  # with the minus and Hebrew's maqaf, without longer dashes
    "~\u301c\u223c", "\u2014\u2015", "\xb7\u2027\u2219\u22c5", "/\u2044\u2215", ":\u2236\ua789", "*\u2217",
    "\xb0\xba\u02da",
    "\u0219\u015f", "\u0218\u015e", "\u021b\u0163", "\u021a\u0162",  # Romanian, comma and cedilla
    "\u06cc\u064a", "\u06a9\u0643", "\u0647\u06c1",  # ye, kaf and heh of Persian, Arabic and Urdu
    *(chr(0x660 + digit) + chr(0x6F0 + digit) for digit in range(10)),
)  # fmt: skip
LOOK_ALIKES = {char: row.replace(char, "") for row in _ROWS for char in row} | {"\u0649": "\u06cc"}  # a final ye
TO_USUAL = {char: row[0] for row in _ROWS for char in row[1:]}
_TATWEEL = "\u0640"  # lengthens an Arabic word
_JAMO = frozenset(map(chr, range(0x1100, 0x1200)))
_SYLLABLES = tuple(map(chr, range(0xAC00, 0xD7A4)))
_LAST_SPACE, _LAST_DECOMPOSABLE, _LAST_CAPITAL = 0x3000, 0x2FA1D, 0x1E921
_NARROW_KANA = tuple(map(chr, range(0xFF66, 0xFF9E)))
_VOICING = {"\u3099": "\uff9e", "\u309a": "\uff9f"}


def known_characters(model: Any) -> set[str]:
    """Returns the characters in the text pieces of a parsed SentencePiece model, without the space."""
    pieces = (piece.piece for piece in model.pieces if piece.type in (piece.NORMAL, piece.USER_DEFINED))
    return set().union(*pieces) - {"\u2581"}


def folding_rules(known: Set[str]) -> dict[str, str]:
    """Returns replacements by text, for a vocabulary with these characters.

    White space becomes a space, default-ignorable characters and controls are dropped, and composed, decomposed or
    compatibility forms of a character, and those that look like it, become the form in the vocabulary.
    """
    capitals = {capital: small for capital, small in _capitals().items() if small in known and capital not in known}
    written = known | capitals.keys()
    rules: dict[str, str] = {}
    for text, replacement in chain(invisible().items(), _other_forms(known, written)):
        is_rule = text != replacement and replacement not in rules and not known >= set(text)
        if is_rule and (replacement == " " or written >= set(replacement)):
            rules.setdefault(text, replacement)
    to_small = str.maketrans(capitals)
    return {text: replacement.translate(to_small) for text, replacement in (rules | capitals).items()}


@cache
def invisible() -> dict[str, str]:
    """Returns a space for each white space, and nothing for each character that is not shown."""
    codes = chain.from_iterable(range(first, last + 1) for first, last in (*_CONTROLS, *_IGNORABLE))
    spaces = (char for char in map(chr, range(_LAST_SPACE + 1)) if char.isspace() and char != " ")
    return dict.fromkeys([*map(chr, codes), _TATWEEL], "") | dict.fromkeys(spaces, " ")


@cache
def _capitals() -> dict[str, str]:
    """Returns the small letter of each capital letter; signs such as Kelvin are other forms of letters."""
    pairs = ((char, char.lower()) for char in map(chr, range(_LAST_CAPITAL + 1)))
    return {
        char: low for char, low in pairs if low != char and len(low) == 1 and unicodedata.is_normalized("NFC", char)
    }


@cache
def compatible() -> dict[str, str]:
    """Returns the usual text for each compatibility form that looks like it."""
    return {
        char: text
        for char in map(chr, range(_LAST_DECOMPOSABLE + 1))
        if unicodedata.decomposition(char).startswith(_COMPATIBLE_FORMS)
        and char not in LOOK_ALIKES
        and " " not in (text := unicodedata.normalize("NFKC", char))  # a space and a mark for an accent
    }


def _other_forms(known: Set[str], written: Set[str]) -> Iterator[tuple[str, str]]:
    """Other spellings of characters that can be written, and replacements for the other characters."""
    for char in sorted(written):
        yield from ((text, char) for text in (*_equivalents(char), *_half_width(char)))
    yield from ((char, form) for char, forms in _forms().items() for form in forms)
    yield from ((char, form) for char, forms in _alike().items() if char not in written for form in forms)
    for char in sorted(written):
        alike = (text for other in LOOK_ALIKES.get(char, "") for text in _equivalents(other))
        yield from ((text, char) for text in (*alike, compatible().get(char, char)) if not written >= set(text))
    if not _JAMO.isdisjoint(known):
        yield from ((char, unicodedata.normalize("NFD", char)) for char in _SYLLABLES)


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Possible replacements for each character with a decomposition, best first, without Hangul, which has no table."""
    forms: dict[str, tuple[str, ...]] = {}
    for char in map(chr, range(_LAST_DECOMPOSABLE + 1)):
        if unicodedata.decomposition(char):
            usual = compatible().get(char, char)
            typed = "".join(TO_USUAL.get(each, each) for each in usual)  # 'n for Afrikaans' U+0149
            same = *_equivalents(char), usual, unicodedata.normalize("NFD", usual)
            forms[char] = (*same, typed) if len(usual) > 1 else same
    return forms


@cache
def _alike() -> dict[str, tuple[str, ...]]:
    """All spellings of the look-alikes of characters and of their other forms, the usual ones first."""
    others = {char: [*LOOK_ALIKES.get(char, "")] for char in (*LOOK_ALIKES, *_forms())}
    for char, forms in _forms().items():
        others[char] += [other for form in forms for other in LOOK_ALIKES.get(form, "")]
    return {char: tuple(text for other in found for text in _equivalents(other)) for char, found in others.items()}


@cache
def _equivalents(char: str) -> tuple[str, ...]:
    """All canonically equivalent spellings, the shortest first: marks in any order, separate or part of a letter."""
    apart = unicodedata.normalize("NFD", char)
    found, waiting = {apart}, [apart]
    while waiting:
        text = waiting.pop()
        for at in range(len(text) - 1):
            first, second = text[at], text[at + 1]
            changed = {unicodedata.normalize("NFC", first + second)}
            if 0 != unicodedata.combining(first) != unicodedata.combining(second) != 0:
                changed.add(second + first)
            new = {text[:at] + pair + text[at + 2 :] for pair in changed} - found
            found |= new
            waiting += new
    return tuple(sorted(found, key=lambda text: (len(text), text != apart, text)))


def _half_width(char: str) -> tuple[str, ...]:
    """A kana with a voicing mark in half-width form, which is two characters."""
    parts = unicodedata.normalize("NFD", char)
    if not (mark := _VOICING.get(parts[1:])):
        return ()
    return tuple(form + mark for form in _NARROW_KANA if unicodedata.normalize("NFKC", form) == parts[0])
