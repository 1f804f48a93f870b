"""A generated corpus, without a download: dates, times, amounts and numbers written out in two languages.

Babel (names and plurals of CLDR) and num2words write them out.
"""

import datetime as dt
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

import num2words
from babel import Locale
from babel.dates import format_date, format_time, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency
from babel.units import format_unit

from softsearch.data.corpora.base import FilePair, ParallelSource, Split
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.errors import ConfigError
from softsearch.ranges import Count, Range

Language = Literal["en", "de", "fr", "es"]
RelativeUnit = Literal["minute", "hour", "day", "week", "year"]
Option = TypeVar("Option")
_FORMAT = 1  # other lines need another number
_FIRST_DAY, _LAST_DAY = dt.date(1900, 1, 1).toordinal(), dt.date(2049, 12, 31).toordinal()
_HOURS = [hour for hour in range(24) if hour % 12 != 1]
_MINUTES = (0, *range(10, 60))
_SECONDS: dict[RelativeUnit, int] = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "year": 31_536_000}
_NUMBER_LIMITS = (100, 100, 1_000, 1_000, 10_000, 10_000, 10_000, 1_000_000)
_CURRENCIES = ("JPY", "CHF", "SEK", "CAD")
_UNITS = ("kilometer", "centimeter", "kilogram", "gram", "liter", "minute", "percent")
_CURRENCIES_WITH_CENTS = ("USD", "EUR", "GBP")
# Neither library has how a date or a time is read aloud.
_DATE = {
    "en": "{weekday} {month} the {ordinal} {year}",
    "de": "{weekday} der {ordinal} {month} {year}",
    "fr": "{weekday} {cardinal} {month} {year}",
    "es": "{weekday} {cardinal} de {month} de {year}",
}
_TIME = {
    "en": "{day} at {hour} {minute} {period}",
    "de": "{day} um {hour} uhr {minute} {period}",
    "fr": "{day} à {hour} heures {minute} {period}",
    "es": "{day} a las {hour} {minute} {period}",
}
_Pairs = Annotated[int, Range(1, 10_000_000)]


@dataclass(frozen=True, kw_only=True)
class Spellout(ParallelSource):
    """Sentence pairs such as "monday march the twenty-first nineteen eighty-four" and its German reading.

    No source and no target sentence occurs twice, so the splits share none. The same options (and versions of Babel and
    num2words) give the same bytes. Word order differs as it does between the languages.

    Args:
        val_size: pairs in ``val``; with the same seed they stay the same when ``train_size`` changes, as ``test`` does.

    Raises:
        ConfigError: the languages are the same.
    """

    src_lang: Language = "en"
    tgt_lang: Language = "de"
    train_size: _Pairs = 20_000
    val_size: _Pairs = 1_000
    test_size: _Pairs = 1_000
    seed: Count = 1

    def __post_init__(self) -> None:
        """Checks the languages."""
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``cache_dir``, written there if need be.

        Raises:
            CorpusError: ``cache_dir`` cannot be written.
        """
        libraries = {name: version(name) for name in ("babel", "num2words")}
        options = {k: v for k, v in asdict(self).items() if k not in ("reverse_source", "target_direction")}
        identity = json.dumps({**options, **libraries, "format": _FORMAT}, sort_keys=True)
        folder = cache_dir / f"spellout-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
        make_folder(folder, self._write)
        return {
            split: (folder / f"{split}.{self.src_lang}", folder / f"{split}.{self.tgt_lang}")
            for split in get_args(Split)
        }

    def _write(self, folder: Path) -> None:
        pairs = _pairs(self.src_lang, self.tgt_lang, self.seed)
        for split, size in (("test", self.test_size), ("val", self.val_size), ("train", self.train_size)):
            sides = zip(*islice(pairs, size), strict=True)
            for lang, side in zip((self.src_lang, self.tgt_lang), sides, strict=True):
                (folder / f"{split}.{lang}").write_bytes("".join(f"{line}\n" for line in side).encode())


def _pairs(src_lang: Language, tgt_lang: Language, seed: int) -> Iterator[tuple[str, str]]:
    """Yields endless pairs, no side of which has been yielded before."""
    seen_src: set[str] = set()
    seen_tgt: set[str] = set()
    for src, tgt in zip(_sentences(src_lang, seed), _sentences(tgt_lang, seed), strict=True):
        if src not in seen_src and tgt not in seen_tgt:
            seen_src.add(src)
            seen_tgt.add(tgt)
            yield src, tgt


def _sentences(lang: Language, seed: int) -> Iterator[str]:
    """Yields endless sentences, which mean the same in all languages with the same seed.

    Nothing is counted in ones: a one agrees with its noun, which num2words does not know.
    """
    rng, speller = random.Random(seed), Speller(lang)

    def below(limit: int) -> int:
        return int(rng.random() * limit)  # random() alone is promised to stay the same in every version of Python

    def choice(options: Sequence[Option]) -> Option:
        return options[below(len(options))]

    def number() -> int:
        return 2 + below(choice(_NUMBER_LIMITS) - 2)

    def day() -> dt.date:
        return dt.date.fromordinal(_FIRST_DAY + below(_LAST_DAY - _FIRST_DAY + 1))

    def time() -> dt.time:
        return dt.time(choice(_HOURS), choice(_MINUTES))

    def relative_at_time() -> str:
        count, unit, clock = 2 + below(98), choice([*_SECONDS]), time()
        return speller.at_time(speller.relative(count if below(2) else -count, unit), clock)

    kinds: list[Callable[[], str]] = [
        *[lambda: speller.date(day())] * 2,
        lambda: speller.at_time(speller.date(day()), time()),
        lambda: speller.at_time(speller.weekday(day()), time()),
        relative_at_time,
        lambda: speller.joined([speller.cardinal(number()) for _ in range(2)]),
        *[lambda: speller.joined([speller.quantity(number(), choice((*_CURRENCIES, *_UNITS))) for _ in range(2)])] * 2,
        *[lambda: speller.amount(number(), 2 + below(98), choice(_CURRENCIES_WITH_CENTS))] * 2,
        lambda: speller.joined([speller.ordinal(1 + below(choice((99, 999)))) for _ in range(2)], "or"),
    ]
    while True:
        yield choice(kinds)()


class Speller:
    """Writes things out in one language, in lower case and without punctuation."""

    def __init__(self, lang: Language) -> None:
        self.lang = lang
        self._locale = Locale.parse(lang)

    def cardinal(self, number: int) -> str:
        """Writes 21 as twenty-one."""
        return _spell(self.lang, "cardinal", number)

    def ordinal(self, number: int) -> str:
        """Writes 21 as twenty-first."""
        return _spell(self.lang, "ordinal", number)

    def amount(self, units: int, cents: int, currency: str) -> str:
        """Writes an amount of money, as in twelve dollars fifty-three cents."""
        return _spell(self.lang, "currency", float(f"{units}.{cents:02d}"), currency=currency)

    def quantity(self, number: int, name: str) -> str:
        """Writes a number of a unit or a currency, as in twelve kilometers or twelve swiss francs."""
        if name in _UNITS:
            return self._with_words(format_unit(number, name, "long", format="0", locale=self._locale))
        money = format_currency(number, name, "0", format_type="name", currency_digits=False, locale=self._locale)
        return self._with_words(money)

    def relative(self, number: int, unit: RelativeUnit) -> str:
        """Writes -3 and "day" as three days ago, and 3 as in three days."""
        delta = dt.timedelta(seconds=number * _SECONDS[unit])
        return self._with_words(
            format_timedelta(delta, granularity=unit, threshold=10**9, add_direction=True, locale=self._locale)
        )

    def joined(self, parts: Sequence[str], style: Literal["standard", "or"] = "standard") -> str:
        """Joins parts as in one and two, or one or two."""
        return _plain(format_list(parts, style, locale=self._locale))

    def weekday(self, day: dt.date) -> str:
        """Writes a date's day of the week."""
        return _plain(format_date(day, "EEEE", locale=self._locale))

    def date(self, day: dt.date) -> str:
        """Writes a date as monday march the twenty-first nineteen eighty-four."""
        return _DATE[self.lang].format(
            weekday=self.weekday(day),
            month=_plain(format_date(day, "MMMM", locale=self._locale)),
            ordinal=self.ordinal(day.day),
            cardinal=self.cardinal(day.day),
            year=_spell(self.lang, "year", day.year),
        )

    def at_time(self, day: str, time: dt.time) -> str:
        """Joins a day and a time of the twelve-hour clock as in monday at seven forty-five in the evening."""
        hour, minute = self.cardinal((time.hour - 1) % 12 + 1), self.cardinal(time.minute) if time.minute else ""
        period = format_time(time, "BBBB", locale=self._locale)
        return _plain(_TIME[self.lang].format(day=day, hour=hour, minute=minute, period=period))

    def _with_words(self, text: str) -> str:
        return _plain(re.sub(r"\d+", lambda match: self.cardinal(int(match[0])), text))


@lru_cache(maxsize=200_000)
def _spell(lang: str, to: str, number: float, **options: str) -> str:
    return _plain(num2words.num2words(number, lang=lang, to=to, **options))


def _plain(text: str) -> str:
    """Lower case; letters, digits, hyphens and apostrophes stay, all else is a space; single spaces."""
    return " ".join(re.sub(r"[^\w'\u2019-]", " ", text.lower()).split())
