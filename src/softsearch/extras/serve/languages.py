"""Languages of the models: clients' spellings of codes, names, and language detection."""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from babel.core import Locale, UnknownLocaleError, get_global

from softsearch.runtime.line_encoder import LineEncoder
from softsearch.text.vocabulary import UNK

AUTO = "auto"  # LibreTranslate's code for a source language to detect
_ALIASES = {"zt": "zh-hant", "zh-tw": "zh-hant", "zh-hk": "zh-hant", "zh-cn": "zh-hans", "pb": "pt-br", "no": "nb"}
# The first words in the Unicode names of letters, if they are not the script's English name.
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
_SAMPLE = 200  # characters of a text used for detection
# Nats per character of a language that no model has, and per piece that is not in a vocabulary: with these values, text
# in a language costs less in its own subword vocabulary, and other text costs more.
_OTHER, _UNKNOWN = 3.0, 20.0
_WEIGHT = 0.25  # weight of the difference in nats, because neighbouring characters are not independent evidence


class Detection(NamedTuple):
    """A language, and the probability, in per cent, that a text is in it."""

    language: str
    confidence: float


class Side(NamedTuple):
    """The side of a model that reads a language."""

    encoder: LineEncoder
    number: int  # 0: source, 1: target


@cache
def _subtags(code: str) -> tuple[str, ...]:
    """Returns the parts of a code in lower case, the language in two letters (ISO 639-1) if possible."""
    plain = code.strip().replace("_", "-").lower()
    language, *others = _ALIASES.get(plain, plain).split("-")
    return (str(get_global("language_aliases").get(language, language)).lower(), *others)


def match(asked: str, code: str) -> int:
    """Returns how well a client's code or English name of a language matches a model's code: 2, 1 or 0 (not at all).

    ``EN``, ``en_US`` and ``eng`` match ``en`` less well than ``en`` itself; ``zh-Hant`` does not match ``zh-Hans``.
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
    """Returns the English name of a language, or its code if it is unknown."""
    try:
        return Locale.parse(code, sep="-" if "-" in code else "_").get_display_name("en") or code
    except (ValueError, UnknownLocaleError, TypeError):
        return code


@cache
def _letters(code: str) -> tuple[str, ...]:
    """Returns the first words in the Unicode names of a language's letters; none if it is unknown."""
    language, *others = _subtags(code)
    scripts = [tag.title() for tag in others if len(tag) == 4 and tag.isalpha()]
    likely = str(get_global("likely_subtags").get(language, "")).split("_")
    script = scripts[0] if scripts else likely[1] if len(likely) > 1 else ""
    return _LETTERS.get(script) or tuple(Locale("en").scripts.get(script, "").upper().split()[:1])


def detect(texts: Iterable[str], languages: Mapping[str, Sequence[Side]]) -> list[Detection]:
    """Detects which of the models' languages a text is in, the most probable first.

    The criteria are its script, and the number of pieces in the vocabulary of each language, compared with a language
    that no model has. Two languages with a common vocabulary cannot be distinguished, so each gets half.
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
    """Returns the code length of a text in nats, for a vocabulary with equally probable pieces."""
    tokenizer = side.encoder.tokenizers[side.number]
    ids = min(
        (side.encoder.ids(form, side.number) for form in (text, text.lower())), key=lambda found: found.count(UNK)
    )
    return len(ids) * math.log(tokenizer.vocab_size) + ids.count(UNK) * _UNKNOWN
