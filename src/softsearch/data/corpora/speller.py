"""Writes numbers, dates, times and amounts out as words, in any language that Babel and num2words both have.

Babel (Unicode CLDR) has the patterns, names and plurals, num2words the numbers. What neither has is how a date or a
time is read aloud; the three small tables below say so for some languages, and the others are read as they are printed.
"""

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Literal

import num2words
from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_time, format_timedelta, get_date_format
from babel.lists import format_list
from babel.numbers import format_currency
from babel.units import format_unit

from softsearch.errors import ConfigError

UNITS = {
    "km": "length-kilometer",
    "cm": "length-centimeter",
    "kg": "mass-kilogram",
    "g": "mass-gram",
    "l": "volume-liter",
    "min": "duration-minute",
    "%": "concentr-percent",
}
WITH_CENTS = ("USD", "EUR", "GBP")
CURRENCIES = ("JPY", "CHF", "SEK", "CAD", *WITH_CENTS)
MAX_ORDINAL = 999
_DAY_ARTICLE = {"en": "the", "de": "der", "no": "den", "sv": "den"}  # and then the day is an ordinal
_CLOCK = {"de": (" uhr", ""), "fr": (" heures", ""), "nl": (" uur", ""), "ja": ("時", "分"), "ko": ("시", "분")}
_AT = {"en": "at", "de": "um", "fr": "à", "es": "a las", "nl": "om", "it": "alle", "pt": "às"}
_FIELD = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
RelativeUnit = Literal["minute", "hour", "day", "week", "year"]
_SECONDS: dict[RelativeUnit, int] = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "year": 31_536_000}
_PROBE = (*range(130), *range(150, 10_000, 37), 10_000, 12_345, 100_000, 999_999)


class Speller:
    """One language's way of writing things out, in lower case and without punctuation.

    Args:
        lang: a code that Babel and num2words both know.
        key: the configuration key that the code comes from, for the message.

    Raises:
        ConfigError: one of the two does not know the language.
    """

    def __init__(self, lang: object, key: str) -> None:
        """Looks the language up."""
        if not (isinstance(lang, str) and _is_supported(lang)):
            raise _unsupported(lang, key)
        self.lang = lang
        self._locale = Locale.parse(lang)
        self._base = lang.split("_")[0]

    @cached_property
    def has_ordinals(self) -> bool:
        """Whether num2words has the ordinals up to 999."""
        return all(_works(self.lang, "ordinal", n) for n in range(1, MAX_ORDINAL + 1))

    @cached_property
    def units(self) -> frozenset[str]:
        """The :data:`UNITS` that Babel has names for."""
        # Babel shows the identifier of a unit that it has no name for.
        return frozenset(u for u, name in UNITS.items() if name not in format_unit(2, name, locale=self._locale))

    @cached_property
    def with_cents(self) -> frozenset[str]:
        """The :data:`WITH_CENTS` that num2words has names for in this language (many inherit the English ones)."""
        english = num2words.CONVERTER_CLASSES["en"].CURRENCY_FORMS
        forms = getattr(num2words.CONVERTER_CLASSES[self.lang], "CURRENCY_FORMS", {})
        own = (c for c in WITH_CENTS if c in forms and (self._base == "en" or forms[c] != english[c]))
        return frozenset(c for c in own if _works(self.lang, "currency", 23.45, currency=c))

    def cardinal(self, number: int) -> str:
        """Writes 21 as twenty-one."""
        return _plain(_spell(self.lang, "cardinal", number))

    def ordinal(self, number: int) -> str:
        """Writes 21 as twenty-first."""
        return _plain(_spell(self.lang, "ordinal", number))

    def amount(self, units: int, cents: int, currency: str) -> str:
        """Writes an amount of one of :attr:`with_cents` as twelve dollars fifty-three cents."""
        return _plain(_spell(self.lang, "currency", float(f"{units}.{cents:02d}"), currency=currency))

    def quantity(self, number: int, name: str) -> str:
        """Writes a number of one of :attr:`units` or :data:`CURRENCIES` as twelve kilometers or twelve swiss francs."""
        if name in UNITS:
            return self._with_words(format_unit(number, UNITS[name], "long", format="0", locale=self._locale))
        amount = format_currency(
            number, name, format="0", format_type="name", currency_digits=False, locale=self._locale
        )
        return self._with_words(amount)

    def relative(self, number: int, unit: RelativeUnit) -> str:
        """Writes -3 and "day" as three days ago, and 3 as in three days."""
        delta = dt.timedelta(seconds=number * _SECONDS[unit])
        return self._with_words(
            format_timedelta(delta, granularity=unit, threshold=10**9, add_direction=True, locale=self._locale)
        )

    def either(self, parts: Sequence[str]) -> str:
        """Joins parts as in one or two."""
        return _plain(format_list(parts, "or", locale=self._locale))

    def both(self, parts: Sequence[str]) -> str:
        """Joins parts as in one and two."""
        return _plain(format_list(parts, locale=self._locale))

    def weekday(self, day: dt.date) -> str:
        """Writes a date's day of the week."""
        return self._with_words(format_date(day, "EEEE", locale=self._locale))

    def date(self, day: dt.date) -> str:
        """Writes a date as monday march the twenty-first nineteen eighty-four."""
        pattern = get_date_format("full", self._locale).pattern
        suffixed = re.search(r"y'?[^\W\d_A-Za-z]", pattern)  # a year followed by a character for year is a number
        words = {"d": lambda: self._day(day.day, pattern), "y": lambda: self._year(day.year, bool(suffixed))}
        return self._filled(pattern, words, day)

    def at_time(self, when: str, time: dt.time) -> str:
        """Joins a day and a time of the twelve-hour clock as in monday at seven forty-five in the evening."""
        pattern = self._locale.datetime_skeletons["Bhm"].pattern
        after_hour, after_minute = _CLOCK.get(self._base, ("", ""))
        words = {
            "h": lambda: f"{(time.hour - 1) % 12 + 1}{after_hour}",
            "K": lambda: f"{time.hour % 12}{after_hour}",
            "m": lambda: f"{time.minute}{after_minute}" if time.minute else "",
            "B": lambda: format_time(time, "BBBB", locale=self._locale),
        }
        clock = f"{_AT.get(self._base, '')} {self._filled(pattern, words, dt.date.min)}"
        return _plain(str(self._locale.datetime_formats["full"]).replace("{1}", when).replace("{0}", clock))

    def _day(self, day: int, pattern: str) -> str:
        article = _DAY_ARTICLE.get(self._base, "")
        if self.has_ordinals and (article or "d." in pattern):
            return f"{article} {self.ordinal(day)}"
        return self.cardinal(day)

    def _year(self, year: int, is_number: bool) -> str:
        if is_number or not _works(self.lang, "year", year):
            return self.cardinal(year)
        return _plain(_spell(self.lang, "year", year))

    def _filled(self, pattern: str, words: dict[str, Callable[[], str]], day: dt.date) -> str:
        """Reads a CLDR pattern: fields from ``words``, or else as names of parts of ``day``; literals as they are."""
        parts = []
        for match in _FIELD.finditer(pattern):
            quoted, letter = match.groups()
            if letter in words:
                parts.append(words[letter]())
            elif letter:
                parts.append(format_date(day, match[0], locale=self._locale))
            else:
                parts.append(match[0] if quoted is None else quoted)
        return self._with_words("".join(parts))

    def _with_words(self, text: str) -> str:
        return _plain(re.sub(r"\d+", lambda match: self.cardinal(int(match[0])), text))


@lru_cache(maxsize=200_000)
def _spell(lang: str, to: str, number: float, **options: str) -> str:
    return str(num2words.num2words(number, lang=lang, to=to, **options))


def _works(lang: str, to: str, number: float, **options: str) -> bool:
    try:
        return bool(_spell(lang, to, number, **options))
    except Exception:  # noqa: BLE001 - what num2words lacks in a language shows as almost any error
        return False


@lru_cache
def _is_supported(lang: str) -> bool:
    if lang not in num2words.CONVERTER_CLASSES:  # asked first: Babel looks for a file of that name
        return False
    try:
        locale = Locale.parse(lang)
    except (UnknownLocaleError, ValueError):
        return False
    return "Bhm" in locale.datetime_skeletons and all(_works(lang, "cardinal", number) for number in _PROBE)


def _unsupported(lang: object, key: str) -> ConfigError:
    supported = [code for code in sorted(num2words.CONVERTER_CLASSES) if _is_supported(code)]
    near = get_close_matches(str(lang).lower(), supported, n=1, cutoff=0.4)
    advice = f"did you mean {near[0]!r}?" if near else f"change {key}"
    return ConfigError(
        f"{key} is {lang!r}, which Babel and num2words do not both write out; expected one of "
        f"{', '.join(supported)}; {advice}"
    )


@lru_cache(maxsize=200_000)
def _plain(text: str) -> str:
    """Lower case; letters, marks, hyphens and apostrophes kept, all else a space; single spaces."""
    lowered = unicodedata.normalize("NFC", text.lower())
    kept = (c if unicodedata.category(c)[0] in "LMN" or c in "-'\u2019\u200c" else " " for c in lowered)
    return " ".join("".join(kept).split())
