"""Scripts of languages (CLDR's likely subtags) and their letters (Unicode's Script_Extensions)."""

import re

import regex
from babel.core import get_global

from softsearch.errors import ConfigError

# Writing systems that combine or vary Unicode's scripts, by ISO 15924 code.
_PARTS = {"Hans": ("Hani",), "Hant": ("Hani",), "Jpan": ("Hani", "Hira", "Kana"), "Kore": ("Hang", "Hani")}


def script_of(language: str) -> str:
    """Returns the ISO 15924 code of a language's usual script (``Thai`` for ``tha``) or given one, or ""."""
    first, *others = re.split("[-_]", language)
    first = get_global("language_aliases").get(first.lower(), first.lower())
    likely = get_global("likely_subtags")
    known = likely.get("_".join((first, *others))) or likely.get(first) or ""
    return next((part.title() for part in (*others, *known.split("_")) if len(part) == 4 and part.isalpha()), "")


def letters_of(language: str, key: str) -> regex.Pattern[str]:
    """Returns a pattern of the letters in a language's usual script (Cyrillic for ``sr``) or given one (``sr-Latn``).

    ``key`` is the option that the language comes from, for messages.

    Raises:
        ConfigError: the language is not in CLDR, or Unicode has no such script.
    """
    script = script_of(language) or "none"
    extensions = "".join(rf"\p{{scx={part}}}" for part in _PARTS.get(script, (script,)))
    try:
        return regex.compile(rf"[\p{{L}}&&[{extensions}]]", regex.V1)
    except regex.error as error:
        raise ConfigError(
            f"{key} is {language!r}, whose script is unknown, but data.filters.min_script needs it; set {key} to a "
            "code such as sr or sr-Latn, or data.filters.min_script=null"
        ) from error
