"""Text that translations copy unchanged: matches of patterns, and usual items such as addresses and numbers."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from time import thread_time
from typing import Any, NamedTuple

import regex

from softsearch.errors import ConfigError, InputError
from softsearch.text.kept_forms import Span, usual_spans
from softsearch.text.simple_patterns import read_pattern

MAX_PATTERN = 1000  # characters
_SECONDS = 1.0  # of CPU time, for all matches in a line; waiting for a busy machine does not count


class Kept(NamedTuple):
    """A part of a text that stays unchanged."""

    begin: int
    end: int
    text: str


class Keep:
    """Finds the parts of texts that translations copy.

    Args:
        patterns: regular expressions, as in the package regex.
        usual: also the forms of ``softsearch.text.kept_forms``: addresses, numbers, placeholders and so on.
        served: if the patterns are from strangers, patterns by name, of any kind, that they may name besides those of
            ``softsearch.text.simple_patterns``; nothing is compiled before the first text.

    Raises:
        ConfigError: a pattern is not a regular expression, or too long.
    """

    def __init__(
        self, patterns: Sequence[str] = (), *, usual: bool = False, served: Mapping[str, str] | None = None
    ) -> None:
        given: object = patterns
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            raise ConfigError(f"keep is {patterns!r:.80}, expected a list of regular expressions, as Keep([PATTERN])")
        for pattern in patterns:
            if len(pattern) > MAX_PATTERN:
                raise ConfigError(f"keep has a pattern of {len(pattern)} characters, expected at most {MAX_PATTERN}")
        self._usual, self._named = usual, tuple(patterns)
        if served is None:
            self._patterns = self._named
            _ = self._compiled  # wrong patterns are refused here
        else:
            self._patterns = tuple(served.get(each) or read_pattern(each) for each in patterns)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves compiled patterns out, so that another process compiles its own."""
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    @cached_property
    def _compiled(self) -> "list[regex.Pattern[str]]":
        compiled = []
        for name, pattern in zip(self._named, self._patterns, strict=True):
            try:
                compiled.append(regex.compile(pattern, cache_pattern=False))  # it would stay for good
            except (regex.error, RecursionError, MemoryError) as error:
                raise ConfigError(
                    f"keep={name!r:.80} is not a regular expression: {str(error) or 'too large'}; put a backslash "
                    "before characters that are meant literally"
                ) from error
        return compiled

    def find(self, text: str) -> list[Kept]:
        """The parts to copy, from left to right; those that overlap or touch are one.

        Raises:
            InputError: the patterns take too long.
        """
        deadline = thread_time() + _SECONDS
        spans, what = list[Span](), ""

        def seconds_left() -> float:
            return max(deadline - thread_time(), 0.001)

        try:
            for name, compiled in zip(self._named, self._compiled, strict=True):
                what = f"keep={name!r:.80}"
                for match in compiled.finditer(text, timeout=seconds_left()):
                    spans += [match.span()] * bool(match[0].strip())
                    if thread_time() > deadline:  # a timeout is one of a single match
                        raise TimeoutError
            if self._usual:
                what = "keep_usual"
                spans += usual_spans(text, seconds_left)
        except (TimeoutError, MemoryError) as error:
            raise InputError(
                f"{what} takes more than {_SECONDS:g} s for {len(text)} characters; send shorter lines, or write "
                "patterns without nested repetitions"
            ) from error
        return joined(text, spans)


def joined(text: str, spans: Sequence[Span]) -> list[Kept]:
    """Returns parts of a text from left to right; those that overlap or touch are one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return [Kept(begin, end, text[begin:end]) for begin, end in found]
