"""Numbers, dates, times and amounts written out as words, by Babel (names and plurals of CLDR) and num2words."""

import datetime as dt
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import num2words
from babel import Locale
from babel.dates import format_date, format_time, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency
from babel.units import format_unit

Language = Literal["en", "de", "fr", "es"]
RelativeUnit = Literal["minute", "hour", "day", "week", "year"]
UNITS = {
    "km": "length-kilometer",
    "cm": "length-centimeter",
    "kg": "mass-kilogram",
    "g": "mass-gram",
    "l": "volume-liter",
    "min": "duration-minute",
    "%": "concentr-percent",
}
CURRENCIES_WITH_CENTS = ("USD", "EUR", "GBP")
_SECONDS: dict[RelativeUnit, int] = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "year": 31_536_000}
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
        """Writes an amount of one of :data:`CURRENCIES_WITH_CENTS` as twelve dollars fifty-three cents."""
        return _spell(self.lang, "currency", float(f"{units}.{cents:02d}"), currency=currency)

    def quantity(self, number: int, name: str) -> str:
        """Writes a number of one of :data:`UNITS` or of a currency as twelve kilometers or twelve swiss francs."""
        if name in UNITS:
            return self._with_words(format_unit(number, UNITS[name], "long", format="0", locale=self._locale))
        return self._with_words(
            format_currency(number, name, "0", format_type="name", currency_digits=False, locale=self._locale)
        )

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
