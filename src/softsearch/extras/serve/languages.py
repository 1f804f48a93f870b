"""Languages of the models: codes as clients spell them, their names, and which one a text is probably in."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from babel.core import Locale, UnknownLocaleError, get_global

from softsearch.runtime.line_encoder import LineEncoder
from softsearch.text.vocabulary import UNK

AUTO = "auto"  # LibreTranslate's source language that is to be detected
_ALIASES = {"zt": "zh-hant", "zh-tw": "zh-hant", "zh-hk": "zh-hant", "zh-cn": "zh-hans", "pb": "pt-br", "no": "nb"}
# The first words of the Unicode names of letters, where they are not the script's English name.
_LETTERS = {
    "Hans": ("CJK",),
    "Hant": ("CJK",),
    "Jpan": ("CJK", "HIRAGANA", "KATAKANA"),
    "Kore": ("HANGUL", "CJK"),
    "Beng": ("BENGALI",),
    "Orya": ("ORIYA",),
    "Mtei": ("MEETEI",),
    "Nkoo": ("NKO",),
    "Cans": ("CANADIAN",),
}
_SAMPLE = 200  # characters of a text by which its language is judged
# Nats of a character of text in a language that no model has, and of a piece that a vocabulary lacks: with these, text
# of a language costs less in its own vocabulary of subwords than here, and text of others more.
_OTHER, _UNKNOWN = 3.0, 20.0
_WEIGHT = 0.25  # of the difference in nats, because neighbouring characters are not independent evidence


class Detection(NamedTuple):
    """A language, and the probability in per cent that a text is in it."""

    language: str
    confidence: float


class Side(NamedTuple):
    """A side of a model: what reads a language."""

    encoder: LineEncoder
    number: int  # 0: source, 1: target


@cache
def _subtags(code: str) -> tuple[str, ...]:
    """A code's parts in lower case, the language in two letters (ISO 639-1) where there are any."""
    plain = code.strip().replace("_", "-").lower()
    language, *others = _ALIASES.get(plain, plain).split("-")
    return (str(get_global("language_aliases").get(language, language)).lower(), *others)


def match(asked: str, code: str) -> int:
    """How well a code that a client sends, or a language's English name, fits one of a model: 2, 1 or 0 (not at all).

    ``EN``, ``en_US`` and ``eng`` fit ``en``, less well than ``en`` itself; ``zh-Hant`` does not fit ``zh-Hans``.
    """
    if len(asked) > 100:
        return 0
    mine, yours = _subtags(code), _subtags(asked)
    if mine == yours or asked.strip().lower() == name_of(code).lower():
        return 2
    scripts = {tag for tags in (mine, yours) for tag in tags[1:] if len(tag) == 4 and tag.isalpha()}
    return int(mine[0] == yours[0] and len(scripts) < 2)


@cache
def name_of(code: str) -> str:
    """The English name of a language; of an unknown one the code."""
    try:
        return Locale.parse(code, sep="-" if "-" in code else "_").get_display_name("en") or code
    except (ValueError, UnknownLocaleError, TypeError):
        return code


@cache
def _letters(code: str) -> tuple[str, ...]:
    """The first words of the Unicode names of a language's letters; none of an unknown one."""
    language, *others = _subtags(code)
    scripts = [tag.title() for tag in others if len(tag) == 4 and tag.isalpha()]
    likely = str(get_global("likely_subtags").get(language, "")).split("_")
    script = scripts[0] if scripts else likely[1] if len(likely) > 1 else ""
    return _LETTERS.get(script) or tuple(Locale("en").scripts.get(script, "").upper().split()[:1])


def detect(texts: Iterable[str], languages: Mapping[str, Sequence[Side]]) -> list[Detection]:
    """Which of the models' languages a text is in, the most probable one first.

    Judged by its script, and by how few pieces the vocabularies of each language need, against a language that no
    model has. Two languages with one common vocabulary cannot be told apart, so each has half.
    """
    text = " ".join(" ".join(texts)[: 4 * _SAMPLE].split())[:_SAMPLE]
    letters = Counter(unicodedata.name(char, "?").split()[0].split("-")[0] for char in text if char.isalpha())
    total = sum(letters.values())
    shares = {code: sum(letters[word] for word in _letters(code)) / max(total, 1) for code in languages}
    nats = {code: min(_nats(text, side) for side in sides) for code, sides in languages.items() if shares[code]}
    other = _OTHER * len(text)
    best = min([other, *nats.values()])
    weights = {code: shares[code] * math.exp(_WEIGHT * (best - nats[code])) for code in nats}
    whole = sum(weights.values()) + math.exp(_WEIGHT * (best - other))
    found = [Detection(code, round(100 * weights.get(code, 0.0) / whole, 1)) for code in languages]
    return sorted(found, key=lambda each: -each.confidence)


def _nats(text: str, side: Side) -> float:
    """The length of a text in the code of a vocabulary whose pieces are all as probable."""
    tokenizer = side.encoder.tokenizers[side.number]
    ids = min(
        (side.encoder.ids(form, side.number) for form in (text, text.lower())), key=lambda found: found.count(UNK)
    )
    return len(ids) * math.log(tokenizer.vocab_size) + ids.count(UNK) * _UNKNOWN
