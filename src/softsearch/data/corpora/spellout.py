"""A generated corpus, without a download: dates, times, amounts and numbers written out in two languages.

They are written out by Babel (names and plurals from CLDR) and num2words.
"""

import datetime as dt
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import num2words
from babel import Locale
from babel.dates import format_date, format_time, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency
from babel.units import format_unit

from softsearch.data.corpora.base import FilePair, ParallelSource, Split
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.errors import ConfigError
from softsearch.ranges import Count, Range
from softsearch.text.corpus import write_lines

Language = Literal["en", "de", "fr", "es"]
RelativeUnit = Literal["minute", "hour", "day", "week", "year"]
_FORMAT = 4  # raise it when the lines change
_FIRST_DAY, _LAST_DAY = dt.date(1900, 1, 1).toordinal(), dt.date(2049, 12, 31).toordinal()
_HOURS = [hour for hour in range(24) if hour % 12 != 1]
_MINUTES = (0, *range(10, 60))
_SECONDS: dict[RelativeUnit, int] = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "year": 31_536_000}
_ROUND = (100, 100, 1_000, 1_000, 10_000, 100_000, 1_000_000, 1_000_000)
_NUMBER_LIMITS = (100, 100, 1_000, 1_000, 10_000, 10_000, 10_000, 1_000_000)
_CURRENCIES = ("JPY", "CHF", "SEK", "CAD")
_ROLE = re.compile(r"_\w+")
_UNITS = ("kilometer", "centimeter", "kilogram", "gram", "liter", "minute", "percent")
_CURRENCIES_WITH_CENTS = ("USD", "EUR", "GBP")
_UNITS_ALONE = (*_UNITS, "hour", "day", "week", "month", "year")
_COUNTED = (*_CURRENCIES, *_CURRENCIES_WITH_CENTS, *_UNITS)
# Neither library knows how dates and times are read aloud. Each word is followed by its role.
_DAY = {
    "en": "{month} the_article {ordinal}",
    "de": "der_article {ordinal} {month}",
    "fr": "{cardinal} {month}",
    "es": "{cardinal} de_of {month}",
}
_YEAR = {"en": "{year}", "de": "{year}", "fr": "{year}", "es": "de_of {year}"}
_DATE = ("weekday", "day", "year")
_PARTS_OF_DATES = (("day",), ("weekday", "day"), ("day", "year"), ("month", "year"))
_TIME = {
    "en": "{day} at_at {hour} {minute} {period}",
    "de": "{day} um_at {hour} uhr_hour {minute} {period}",
    "fr": "{day} à_at {hour} heures_hour {minute} {period}",
    "es": "{day} a_at las_at {hour} {minute} {period}",
}
_Parts = dict[str, list[list[int]]]  # indices of words by role, a list for each part of a sentence
_Pairs = Annotated[int, Range(1, 10_000_000)]


@dataclass(frozen=True, kw_only=True)
class Spellout(ParallelSource):
    """Sentence pairs such as "monday march the twenty-first nineteen eighty-four" and its German reading.

    No source or target sentence occurs twice, so splits do not overlap; the few pairs of single words are all in
    ``train``. The same options (and versions of Babel and num2words) give the same bytes. Word order differs as it does
    between the languages. Next to a split's text, ``SPLIT.links`` lists the source words of each target word.

    Args:
        short_size: further pairs in ``train``, such as "march", "forty" and "march the third", for a model that is
            to translate what people type first: single words, which are repeated, numbers and parts of dates.
        val_size: pairs in ``val``; with the same seed, ``val`` and ``test`` stay the same when ``train_size`` changes.

    Raises:
        ConfigError: the languages are equal.
    """

    src_lang: Language = "en"
    tgt_lang: Language = "de"
    train_size: _Pairs = 20_000
    short_size: Annotated[int, Range(0, 10_000_000)] = 0
    val_size: _Pairs = 1_000
    test_size: _Pairs = 1_000
    seed: Count = 1

    def __post_init__(self) -> None:
        """Checks the languages."""
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``cache_dir``, written there if necessary.

        Raises:
            CorpusError: ``cache_dir`` cannot be written.
        """
        libraries = {name: version(name) for name in ("babel", "num2words")}
        folder = made_folder(cache_dir, "spellout", self._identity(**libraries, format=_FORMAT), self._write)
        return {
            split: (folder / f"{split}.{self.src_lang}", folder / f"{split}.{self.tgt_lang}")
            for split in get_args(Split)
        }

    def _write(self, folder: Path) -> None:
        languages = (self.src_lang, self.tgt_lang)
        sentences = zip(*(_sentences(lang, self.seed) for lang in languages), strict=True)
        short = zip(*(_short(lang, self.seed) for lang in languages), strict=True)
        seen: set[tuple[int, str]] = set()
        for split, size in (("test", self.test_size), ("val", self.val_size), ("train", self.train_size)):
            pairs = [islice(_new(sentences, seen, words="once" if split == "train" else "none"), size)]
            if split == "train":
                pairs.append(islice(_new(short, seen, words="often"), self.short_size))
            for ending, lines in zip((*languages, "links"), zip(*chain(*pairs), strict=True), strict=True):
                write_lines(folder / f"{split}.{ending}", lines)


def _new(
    sentences: Iterator[tuple[str, ...]], seen: set[tuple[int, str]], *, words: Literal["none", "once", "often"]
) -> Iterator[tuple[str, ...]]:
    """Yields pairs with neither side in ``seen``, and their links; ``words`` says how often single words may occur."""
    for sides in sentences:
        pair = [_ROLE.sub("", side) for side in sides]
        is_word = " " not in "".join(pair)
        if (is_word and words == "often") or (seen.isdisjoint(enumerate(pair)) and not (is_word and words == "none")):
            seen.update(enumerate(pair))
            yield *pair, _links(*map(_parts, sides))


def _links(src: _Parts, tgt: _Parts) -> str:
    """Links the words of equal parts in Pharaoh's format; a link is sure if the part is one word in both languages."""
    pairs = [pair for role in tgt for pair in zip(src[role], tgt[role], strict=False)]
    return " ".join(f"{i}{'-' if len(x) == len(y) == 1 else '?'}{j}" for x, y in pairs for i in x for j in y)


def _parts(sentence: str) -> _Parts:
    """Groups the indices of adjacent words with the same role, by role."""
    parts: _Parts = defaultdict(list)
    for role, words in groupby(enumerate(sentence.split()), key=lambda word: word[1].partition("_")[2]):
        parts[role].append([index for index, _ in words])
    return parts


def _draws(seed: int) -> tuple[Callable[[int], int], Callable[[Sequence[Any]], Any], Callable[[], dt.date]]:
    """Returns functions that draw a number below a limit, one of several options, and a day."""
    rng = random.Random(seed)

    def below(limit: int) -> int:
        return int(rng.random() * limit)  # only random() is guaranteed to be the same in all versions of Python

    def choice(options: Sequence[Any]) -> Any:
        return options[below(len(options))]

    def day() -> dt.date:
        return dt.date.fromordinal(_FIRST_DAY + below(_LAST_DAY - _FIRST_DAY + 1))

    return below, choice, day


def _short(lang: Language, seed: int) -> Iterator[str]:
    """Yields single words of each kind, and parts of dates, endlessly, like ``_sentences``."""
    below, choice, day = _draws(seed)
    speller = Speller(lang)

    def unit() -> str:
        if below(2):
            return _word(speller.quantity(1 + below(2), choice(_UNITS_ALONE)), "unit")
        return _word(speller.amount(1 + below(2), 1 + below(2), choice(_CURRENCIES_WITH_CENTS)), "unit", below(2))

    kinds: list[Callable[[], str]] = [
        *[lambda: speller.cardinal(below(100))] * 4,
        lambda: speller.cardinal(-1 - below(99)),
        *[lambda: speller.cardinal(choice(_ROUND) * (1 + below(choice((1, 9)))))] * 2,
        *[lambda: speller.ordinal(1 + below(99))] * 3,
        lambda: speller.weekday(day()),
        *[lambda: speller.month(day())] * 2,
        *[unit] * 3,
        *[lambda: speller.date(day(), choice(_PARTS_OF_DATES))] * 3,
    ]
    while True:
        yield choice(kinds)()


def _word(text: str, role: str, place: int = 0) -> str:
    """Returns the first word of a part of a sentence."""
    return text.split()[_parts(text)[role][place][0]]


def _sentences(lang: Language, seed: int) -> Iterator[str]:
    """Yields sentences endlessly, with the words' roles; the same seed gives the same meanings in all languages.

    No quantity is one, because "one" agrees with its noun, which num2words does not know.
    """
    below, choice, day = _draws(seed)
    speller = Speller(lang)

    def number() -> int:
        return 2 + below(choice(_NUMBER_LIMITS) - 2)

    def time() -> dt.time:
        return dt.time(choice(_HOURS), choice(_MINUTES))

    def relative() -> str:
        count, unit = 2 + below(98), choice([*_SECONDS])
        return speller.relative(count if below(2) else -count, unit)

    def sequence() -> str:
        numbers = [1 + below(choice((20, 99))) for _ in range(2 + below(2))]
        return " ".join(speller.cardinal(number, f"number{place}") for place, number in enumerate(numbers))

    kinds: list[Callable[[], str]] = [
        *[lambda: speller.date(day())] * 2,
        lambda: speller.at_time(speller.date(day()), time()),
        lambda: speller.at_time(speller.weekday(day()), time()),
        lambda: speller.at_time(relative(), time()),
        lambda: speller.joined([speller.cardinal(number()) for _ in range(2)]),
        *[lambda: speller.joined([speller.quantity(number(), choice(_COUNTED)) for _ in range(2)])] * 2,
        *[lambda: speller.amount(number(), 2 + below(98), choice(_CURRENCIES_WITH_CENTS))] * 2,
        lambda: speller.joined([speller.ordinal(1 + below(choice((99, 999)))) for _ in range(2)], "or"),
        lambda: speller.cardinal(1 + below(choice((99, 99, 99, 99_999)))),
        lambda: choice((speller.weekday, speller.month))(day()),
        *[sequence] * 2,
        lambda: speller.quantity(number(), choice(_COUNTED)),
        *[relative] * 2,
    ]
    while True:
        yield choice(kinds)()


class Speller:
    """Writes things out in one language, in lower case and without punctuation, each word followed by its role.

    So 21 is "twenty-one_number". A role is a word's meaning, the same in all languages; "and" and "or" have none.
    """

    def __init__(self, lang: Language) -> None:
        self.lang = lang
        self._locale = Locale.parse(lang)

    def cardinal(self, number: int, role: str = "number") -> str:
        """Writes 21 as twenty-one."""
        return _with_role(_spell(self.lang, "cardinal", number), role)

    def ordinal(self, number: int, role: str = "number") -> str:
        """Writes 21 as twenty-first."""
        return _with_role(_spell(self.lang, "ordinal", number), role)

    def amount(self, units: int, cents: int, currency: str) -> str:
        """Writes an amount of money, such as twelve dollars fifty-three cents."""
        words = _spell(self.lang, "currency", float(f"{units}.{cents:02d}"), currency=currency).split()
        number, rest = (len(_spell(self.lang, "cardinal", count).split()) for count in (units, cents))
        name = len(words) - number - rest - 1
        roles = ["number"] * number + ["unit"] * name + ["number"] * rest + ["unit"]
        return " ".join(map(_with_role, words, roles))

    def quantity(self, number: int, name: str) -> str:
        """Writes a number of a unit or a currency, such as twelve kilometers or twelve swiss francs."""
        if name in _UNITS_ALONE:
            return self._counted(format_unit(number, name, "long", format="0", locale=self._locale), "unit")
        money = format_currency(number, name, "0", format_type="name", currency_digits=False, locale=self._locale)
        return self._counted(money, "unit")

    def relative(self, number: int, unit: RelativeUnit) -> str:
        """Writes -3 and "day" as three days ago, and 3 as in three days."""
        delta = dt.timedelta(seconds=number * _SECONDS[unit])
        text = format_timedelta(delta, granularity=unit, threshold=10**9, add_direction=True, locale=self._locale)
        return self._counted(text, "direction")

    def joined(self, parts: Sequence[str], style: Literal["standard", "or"] = "standard") -> str:
        """Joins parts with "and" or "or"."""
        return _plain(format_list(parts, style, locale=self._locale))

    def weekday(self, day: dt.date) -> str:
        """Writes a date's day of the week."""
        return _with_role(_plain(format_date(day, "EEEE", locale=self._locale)), "weekday")

    def month(self, day: dt.date) -> str:
        """Writes a date's month."""
        return _with_role(_plain(format_date(day, "MMMM", locale=self._locale)), "month")

    def date(self, day: dt.date, parts: Sequence[str] = _DATE) -> str:
        """Writes a date, such as monday march the twenty-first nineteen eighty-four, or some of its parts."""
        month = self.month(day)
        ordinal, cardinal = self.ordinal(day.day, "day"), self.cardinal(day.day, "day")
        texts = {
            "weekday": self.weekday(day),
            "month": month,
            "day": _DAY[self.lang].format(month=month, ordinal=ordinal, cardinal=cardinal),
            "year": _YEAR[self.lang].format(year=_with_role(_spell(self.lang, "year", day.year), "year")),
        }
        return " ".join(texts[part] for part in parts)

    def at_time(self, day: str, time: dt.time) -> str:
        """Joins a day and a time on the twelve-hour clock, such as monday at seven forty-five in the evening."""
        hour = self.cardinal((time.hour - 1) % 12 + 1, "hour")
        minute = self.cardinal(time.minute, "minute") if time.minute else ""
        period = _with_role(_plain(format_time(time, "BBBB", locale=self._locale)), "period")
        return _plain(_TIME[self.lang].format(day=day, hour=hour, minute=minute, period=period))

    def _counted(self, text: str, role: str) -> str:
        """Spells out the number in a text; the word after it is its unit, and all other words get ``role``."""

        def spell(match: re.Match[str]) -> str:
            number, unit, other = match.groups()
            return _with_role(other, role) if other else f"{self.cardinal(int(number))} {_with_role(unit, 'unit')}"

        return re.sub(r"(\d+) (\S+)|(\S+)", spell, _plain(text))


@lru_cache(maxsize=200_000)
def _spell(lang: str, to: str, number: float, **options: str) -> str:
    return _plain(num2words.num2words(number, lang=lang, to=to, **options))


def _with_role(text: str, role: str) -> str:
    return re.sub(r"\S+", rf"\g<0>_{role}", text)


def _plain(text: str) -> str:
    """Lower-cases text and keeps letters, digits, hyphens, apostrophes and underscores, separated by single spaces."""
    return " ".join(re.sub(r"[^\w'\u2019-]", " ", text.lower()).split())
