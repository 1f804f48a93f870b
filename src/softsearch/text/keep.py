"""Text that translations copy unchanged: matches of patterns, and usual items such as addresses and numbers."""

from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

import regex

from softsearch.errors import ConfigError, InputError

MAX_PATTERN = 1000  # characters
_SECONDS = 1.0  # for all matches in a line
_USUAL = (
    r"(?:https?|ftp)://[^\s<>\"]*[^\s<>\".,;:!?)\]']|www\.[^\s<>\"]*[^\s<>\".,;:!?)\]']",
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    r"`[^`\n]+`",
    r"<0x[0-9A-Fa-f]{2}>",
    r"\{[\w.:!-]*\}",
    r"%(?:\(\w+\))?[-#0+]*\d*(?:\.\d+)?[diouxXeEfgGcs]\b",
    r"(?<!\w)[+\u2212-]?\d+(?:[.,:/-]\d+)*",
)


class Kept(NamedTuple):
    """A part of a text that stays unchanged."""

    begin: int
    end: int
    text: str


class Keep:
    """Finds the parts of texts that translations copy.

    Args:
        patterns: regular expressions, as in the package regex.
        usual: also addresses (URLs, e-mail), numbers with digits, code in backticks and placeholders: ``{name}``,
            ``%s``, ``%(n)d``, ``<0x0A>``.

    Raises:
        ConfigError: a pattern is not a regular expression, or too long.
    """

    def __init__(self, patterns: Sequence[str] = (), *, usual: bool = False) -> None:
        given: object = patterns
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            raise ConfigError(f"keep is {patterns!r:.80}, expected a list of regular expressions, as Keep([PATTERN])")
        self._patterns = []
        for pattern in (*patterns, *(_USUAL if usual else ())):
            if len(pattern) > MAX_PATTERN:
                raise ConfigError(f"keep has a pattern of {len(pattern)} characters, expected at most {MAX_PATTERN}")
            try:
                self._patterns.append(regex.compile(pattern))
            except (regex.error, RecursionError) as error:
                raise ConfigError(
                    f"keep={pattern!r:.80} is not a regular expression: {error}; put a backslash before characters "
                    "that are meant literally"
                ) from error

    def find(self, text: str) -> list[Kept]:
        """The parts to copy, from left to right; if several begin at one place, the longest one.

        Raises:
            InputError: the patterns take too long.
        """
        spans: list[tuple[int, int]] = []
        deadline = monotonic() + _SECONDS
        for pattern in self._patterns:
            try:
                matches = pattern.finditer(text, timeout=max(deadline - monotonic(), 0.001))
                spans += [match.span() for match in matches if match.group().strip()]
            except (TimeoutError, MemoryError) as error:
                raise InputError(
                    f"keep={pattern.pattern!r:.80} takes more than {_SECONDS:g} s for {len(text)} characters; "
                    "write it without nested repetitions"
                ) from error
        found: list[Kept] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if not found or begin >= found[-1].end:
                found.append(Kept(begin, end, text[begin:end]))
        return found
