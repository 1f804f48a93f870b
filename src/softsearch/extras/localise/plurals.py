"""Which plural forms a language has: by Unicode's CLDR (through Babel), and in gettext."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from softsearch.errors import ConfigError
from softsearch.extras.localise.catalog import language_of
from softsearch.extras.localise.toolkit import module
from softsearch.process import how_to_install

_CATEGORIES = ("zero", "one", "two", "few", "many", "other")
_NUMBERS, _OFTEN = range(1000), 5  # as msgfmt, which asks for the number in forms that are for 5 of these or more


class Plurals(NamedTuple):
    """The plural forms of a language.

    Args:
        categories: their names, in CLDR's order; the last one is ``other``.
        usual: those of whole numbers below 1,000; in Czech, ``many`` is for fractions alone.
        one_has_number: the text of ``one`` must name the number, because it is for 21, 31, ..., too, as in Russian.
    """

    categories: tuple[str, ...]
    usual: frozenset[str]
    one_has_number: bool


@cache
def plurals_of(code: str, *, ordinal: bool = False) -> Plurals:
    """Returns the plural forms of a language such as ``pt-BR``; those of English for one that CLDR does not know.

    Args:
        code: the language.
        ordinal: forms of ``1st``, ``2nd``, ... instead of ``1 file``, ``2 files``, ...

    Raises:
        ConfigError: Babel is not installed.
    """
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError as error:
        raise ConfigError(f"plural forms of languages need Babel: {how_to_install('localise')}") from error
    for known in (code.replace("-", "_"), language_of(code), "en"):
        try:
            locale = Locale.parse(known)
        except (ValueError, UnknownLocaleError):
            continue
        rule = locale.ordinal_form if ordinal else locale.plural_form
        categories = tuple(each for each in _CATEGORIES if each in rule.tags or each == "other")
        return Plurals(categories, frozenset(map(rule, _NUMBERS)), is_often(rule, "one"))
    raise AssertionError("Babel knows English")


def is_often(rule: Callable[[int], object], form: object) -> bool:
    """Tells whether a plural form must name its number, because it is for many."""
    return sum(rule(number) == form for number in _NUMBERS) >= _OFTEN


def rule_of(code: str) -> tuple[int, str]:
    """Returns the number of a language's plural forms in gettext, and their rule, as in the header of a PO file."""
    known = module("lang.data").languages
    _, forms, rule = known.get(code.replace("-", "_")) or known.get(language_of(code)) or known["en"]
    return forms, rule
