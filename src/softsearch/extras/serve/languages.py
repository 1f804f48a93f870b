"""Languages of the models: clients' spellings of codes, names, and language detection."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from html import unescape
from itertools import islice
from typing import NamedTuple

import regex
from babel.core import Locale, UnknownLocaleError, get_global

from softsearch.extras.serve.models import ENCODERS
from softsearch.runtime.parts import LineEncoder
from softsearch.text import UNK, SentencePieceTokenizer

AUTO = "auto"  # LibreTranslate's code for a source language to detect
CONFIDENCE = 10.0  # per cent that a detected language needs to be translated, and twice that of any other
_LONGEST_CODE = 100  # characters
_ALIASES = {"zt": "zh-hant", "zh-tw": "zh-hant", "zh-hk": "zh-hant", "zh-cn": "zh-hans", "pb": "pt-br", "no": "nb"}
# Codes of multilingual models (FLORES) that CLDR does not map to the code that everybody writes.
_INDIVIDUAL = {"als": "sq", "fuv": "ff", "pbt": "ps", "quy": "qu", "taq": "tmh"}
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
# Tags and addresses have letters, but no language; neither has the text of some elements.
_NO_LANGUAGE = re.compile(
    r"<!--.*?(?:-->|\Z)|<(code|kbd|math|pre|samp|script|style|svg|tt|var)\b.*?(?:</\1\b[^<>]*+>|\Z)|</?[a-z!?][^<>]*+(?:>|\Z)"
    r"|&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]\w{1,30});|\b(?:https?|ftp)://\S++",
    re.DOTALL | re.IGNORECASE,
)
_LETTER = regex.compile(r"[\p{L}\p{M}]")
_WORDS = regex.compile(r"\p{L}[\p{L}\p{M}'\u2019]*+")
_SAMPLE = 200  # characters of a text used for detection
_UNKNOWN = 10.0  # nats for a letter that is not in a vocabulary, besides those of any letter
_SURE = 20  # letters after which more do not make it less probable that the language is one of the models'
_WEIGHT = 0.25  # weight of the difference in nats, because neighbouring characters are not independent evidence


class Detection(NamedTuple):
    """A language, and the probability, in per cent, that a text is in it."""

    language: str
    confidence: float


class Side(NamedTuple):
    """The side of a model that reads a language."""

    encoder: LineEncoder
    number: int  # 0: source, 1: target


Places = Mapping[str, Sequence[tuple[str, int]]]  # languages, each with the models and their sides that read it


class _Tag(NamedTuple):
    """A language code, in lower case."""

    language: str  # in two letters (ISO 639-1) if possible
    script: str  # "" if unknown
    others: tuple[str, ...]  # the further parts of the code as it is spelled


def _tag(code: str) -> _Tag:
    """Reads a code, and adds the script in which the language is usually written (in the region, if it names one)."""
    plain = code.strip().replace("_", "-").lower()
    first, *others = _ALIASES.get(plain, plain).split("-")
    first = _INDIVIDUAL.get(first) or get_global("language_aliases").get(first, first)
    language, *added = str(first).lower().split("_")
    parts = (*added, *others)
    script = next((part for part in parts if len(part) == 4 and part.isalpha()), "")
    if not script:
        region = next((part.upper() for part in parts if len(part) in (2, 3)), "")
        likely = get_global("likely_subtags")
        found = str(likely.get(f"{language}_{region}") or likely.get(language) or "").split("_")
        script = found[1].lower() if len(found) > 1 else ""
    return _Tag(language, script, parts)


_model_tag = lru_cache(4096)(_tag)  # of the models' codes; clients' words are not kept


def match(asked: str, code: str) -> int:
    """Returns how well a client's code or English name of a language matches a model's code: 2, 1 or 0 (not at all).

    ``EN``, ``en_US`` and ``eng`` match ``en`` less well than ``en`` itself; languages in another script do not match:
    ``zh-TW`` is not ``zh``, which is usually written in simplified letters.
    """
    if len(asked) > _LONGEST_CODE:
        return 0
    mine, yours = _model_tag(code), _tag(asked)
    if mine == yours or asked.strip().lower() in _names(code):
        return 2
    return int(mine.language == yours.language and (mine.script == yours.script or not (mine.script and yours.script)))


def best_match(asked: str, codes: Iterable[str]) -> tuple[int, str]:
    """Returns how well the best of the codes matches, as in ``match``, and the first such code."""
    return max(((match(asked, code), code) for code in codes), key=lambda found: found[0], default=(0, ""))


@lru_cache(4096)
def name_of(code: str) -> str:
    """Returns the English name of a model's language, or its code if it is unknown."""
    tag = _tag(code)
    others = sorted((part.title() if len(part) == 4 else part.upper() for part in tag.others), key=len, reverse=True)
    spellings = code.replace("-", "_"), "_".join((tag.language, *others))
    for spelling in spellings:
        try:
            if name := Locale.parse(spelling).get_display_name("en"):
                return name
        except (ValueError, UnknownLocaleError, TypeError):
            pass
    return code


@lru_cache(4096)
def _names(code: str) -> tuple[str, ...]:
    """Returns the English names of a model's language in lower case, the shorter one for the usual script."""
    name, tag = name_of(code).lower(), _tag(code)
    return name, *([name.partition(" (")[0]] if tag.script == _tag(tag.language).script else [])


@cache
def _letters(script: str) -> tuple[str, ...]:
    """Returns the first words in the Unicode names of a script's letters; none if it is unknown."""
    title = script.title()
    return _LETTERS.get(title) or tuple(Locale("en").scripts.get(title, "").upper().split()[:1])


def _first_word(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0].split("-")[0]


class _Letters(NamedTuple):
    """What a vocabulary has of each kind of letters, by the first words in their Unicode names."""

    letters: Counter[str]  # different ones, in lower case
    pieces: Counter[str]  # that begin with one


@lru_cache(64)
def _vocabulary(tokenizer: SentencePieceTokenizer) -> _Letters:
    pieces = [letters for name in tokenizer.names() if (letters := _LETTER.findall(name))]
    different = {char for letters in pieces for char in "".join(letters).lower()}
    return _Letters(Counter(map(_first_word, different)), Counter(_first_word(letters[0]) for letters in pieces))


def words_of(text: str) -> str:
    """Returns the first words of a text, of letters only, without tags, code and addresses."""
    plain = _NO_LANGUAGE.sub(lambda found: unescape(found[0]) if found[0][0] == "&" else " ", text)
    words = _WORDS.finditer(unicodedata.normalize("NFKC", plain))
    return " ".join(word[0] for word in islice(words, _SAMPLE))[:_SAMPLE]


def detect_each(
    encoders: Mapping[str, LineEncoder], texts: Sequence[str], places: Places, most: int | None = None
) -> list[list[Detection]]:
    """Detects the ``most`` probable languages of each text, or all; none of a text without words."""
    languages = {
        code: [Side(encoders[name], number) for name, number in of_language] for code, of_language in places.items()
    }
    words = [words_of(text) for text in texts]
    found = {each: detect(each, languages)[:most] if each else [] for each in {*words}}
    return [found[each] for each in words]


def detect_in_worker(_: LineEncoder, texts: Sequence[str], places: Places, most: int | None) -> list[list[Detection]]:
    """Calls ``detect_each`` in a worker process."""
    return detect_each(ENCODERS, texts, places, most)


def detect(text: str, languages: Mapping[str, Sequence[Side]]) -> list[Detection]:
    """Detects which of the models' languages the words of a text are in, the most probable first.

    The criteria are its script, and the number of pieces in the vocabulary of each language, compared with any sequence
    of its letters. Languages with a common vocabulary and script cannot be distinguished, so they get equal shares.
    """
    letters = Counter(map(_first_word, _LETTER.findall(text)))
    total, known = sum(letters.values()), dict[tuple[SentencePieceTokenizer, str], tuple[float, float]]()
    shares, costs = dict[str, float](), dict[str, float]()
    for code, sides in languages.items():
        words = _letters(script := _model_tag(code).script)
        if share := sum(letters[word] for word in words) / max(total, 1):
            keys = {(side.encoder.tokenizers[side.number], script): side for side in sides}
            known |= {key: _nats(text, total, side, words) for key, side in keys.items() if key not in known}
            shares[code], costs[code] = share, min(known[key][0] for key in keys)
    any_letters = max((plain for _, plain in known.values()), default=0.0)
    best = min(costs.values(), default=0.0)
    weights = {code: shares[code] * math.exp(_WEIGHT * (best - costs[code])) for code in costs}
    whole = sum(weights.values()) + math.exp(_WEIGHT * (best - any_letters) * min(1.0, _SURE / max(total, 1)))
    found = [Detection(code, round(100 * weights.get(code, 0.0) / whole, 1)) for code in languages]
    return sorted(found, key=lambda each: -each.confidence)


def _nats(text: str, letters: int, side: Side, words: Sequence[str]) -> tuple[float, float]:
    """Returns the code lengths of a text in nats: in equally probable pieces of a vocabulary, and in letters."""
    tokenizer = side.encoder.tokenizers[side.number]
    have = _vocabulary(tokenizer)
    pieces, per_letter = (
        math.log(max(2, sum(counts[word] for word in words))) for counts in (have.pieces, have.letters)
    )
    ids = min(
        (side.encoder.ids(form, side.number) for form in (text, text.lower())), key=lambda found: found.count(UNK)
    )
    unknown = ids.count(UNK)
    return (len(ids) - unknown) * pieces + unknown * (_UNKNOWN + per_letter), letters * per_letter
