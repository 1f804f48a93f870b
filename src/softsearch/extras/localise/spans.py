"""What is not language in a message, as numbered symbols: placeholders, tags, addresses, file names, options, code.

A model reads and writes ``Open <1> in <2>``, and never sees what stands behind a symbol.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from softsearch.text.parts import SYMBOL, usual_spans

MOST = 40  # symbols of a message
SYMBOLS = tuple(f"<{number}>" for number in range(1, MOST + 1))
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp);")
_PLAIN_NUMBER = re.compile(r"[\d\s.,:'\u2019/x\u00d7+\u2212\u2013-]+")
_NO_LIMIT = 1.0  # seconds for a form in a message


class Masked(NamedTuple):
    """A message with symbols, and what they stand for, in order."""

    text: str
    spans: tuple[str, ...]


def spans_of(text: str) -> list[tuple[int, int]]:
    """Returns where a message is not language, from left to right, without overlaps: the longest of several."""
    found = [*usual_spans(text, lambda: _NO_LIMIT), *(match.span() for match in _OPTION.finditer(text))]
    found = [(begin, end) for begin, end in found if not _PLAIN_NUMBER.fullmatch(text, begin, end)]
    chosen: list[tuple[int, int]] = []
    for begin, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not chosen or begin >= chosen[-1][1]:
            chosen.append((begin, end))
        elif end > chosen[-1][1] and begin == chosen[-1][0]:
            chosen[-1] = begin, end
    return chosen


def mask(text: str) -> Masked:
    """Replaces what is not language with symbols, numbered from 1."""
    places = spans_of(text)
    return Masked(_replaced(text, places, SYMBOLS), tuple(text[begin:end] for begin, end in places))


def mask_pair(source: str, target: str) -> tuple[str, str] | None:
    """Returns both texts with symbols, equal ones for equal spans; None if the spans differ, or are too many."""
    masked, places = mask(source), spans_of(target)
    if len(masked.spans) > MOST or len(places) != len(masked.spans):
        return None
    numbers = list(range(len(places)))
    symbols = []
    for begin, end in places:
        number = next((n for n in numbers if masked.spans[n] == target[begin:end]), None)
        if number is None:
            return None
        numbers.remove(number)
        symbols.append(SYMBOLS[number])
    return masked.text, _replaced(target, places, symbols)


def unmask(translation: str, spans: Sequence[str]) -> str | None:
    """Puts the spans back; None unless each symbol occurs once, and no other does."""
    numbers = [int(match[1]) for match in SYMBOL.finditer(translation)]
    if sorted(numbers) != list(range(1, len(spans) + 1)):
        return None
    return SYMBOL.sub(lambda match: spans[int(match[1]) - 1], translation)


def _replaced(text: str, places: Sequence[tuple[int, int]], symbols: Sequence[str]) -> str:
    parts, reached = [], 0
    for (begin, end), symbol in zip(places, symbols, strict=False):
        parts += [text[reached:begin], symbol]
        reached = end
    return "".join([*parts, text[reached:]])
