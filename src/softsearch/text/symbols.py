"""What is not language, as numbered symbols: placeholders, tags, addresses, file names, options, code.

A model that was trained so reads and writes ``Open <1> in <2>``, and never sees what stands behind a symbol.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import NamedTuple

from softsearch.text.kept_forms import Span, usual_spans
from softsearch.text.nested_tags import nested_spans
from softsearch.text.vocabulary import SYMBOL

MOST = 40  # symbols of a text
SYMBOLS = tuple(f"<{number}>" for number in range(1, MOST + 1))
MATCH = "<0>"  # stands behind a similar translation that the model may copy from, whose symbols are not required
_OPTION = re.compile(r"(?<![\w-])--(?:\[no-\])?[A-Za-z][\w-]*")
_PLAIN_NUMBER = re.compile(r"[\d\s.,:'\u2019/x\u00d7+\u2212\u2013-]+")
_ENDING = r"[-:][^\W\d_]+"  # of a word that is made of what is not language: %1:n, /etc/fstab-Datei
_BY_PLACE = re.compile(  # also within --size=%d, 0%o and %dpx
    r"(?:0|--?[\w-]+=)?%[-#0+',]*[\d*]*(?:\.[\d*]*)?(?:(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGaAcCsSp@][A-Za-z]{0,2}|<PRI\w+>)"
    r"|\{\}|~\w"
)
_SYMBOL_AND_SPACE = re.compile(rf"(\s?){SYMBOL.pattern}")
_SECONDS = 1.0  # for a form in a text


class Masked(NamedTuple):
    """A text with symbols, and what they stand for, in order."""

    text: str
    spans: tuple[str, ...]


def spans_of(text: str, seconds_left: Callable[[], float] = lambda: _SECONDS) -> list[Span]:
    """Returns where a text is not language, from left to right; what overlaps is one span.

    Plain numbers are text: languages write them differently.

    Raises:
        TimeoutError: it takes longer than ``seconds_left``.
    """
    found = [*usual_spans(text, seconds_left), *(match.span() for match in _OPTION.finditer(text))]
    found = [(begin, end) for begin, end in found if not _PLAIN_NUMBER.fullmatch(text, begin, end)]
    chosen: list[Span] = []
    for begin, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not chosen or begin >= chosen[-1][1]:
            chosen.append((begin, end))
        elif end > chosen[-1][1] and text[slice(*chosen[-1])] != "%%":  # the second sign begins nothing
            chosen[-1] = chosen[-1][0], end
    return chosen


def spans_of_translation(text: str, source_spans: Collection[str]) -> list[Span]:
    """Returns where a translation is not language, as ``spans_of``.

    What the source has may be followed by a case ending, as in Finnish and Swedish (``%1:n``), or be the start of a
    word, as in German (``/etc/fstab-Datei``), unless the source has that, too.
    """
    places = []
    for begin, end in spans_of(text):
        whole = text[begin:end]
        if whole not in source_spans:
            stems = (each for each in source_spans if whole.startswith(each))
            end = begin + next((len(each) for each in stems if re.fullmatch(_ENDING, whole[len(each) :])), end - begin)
        places.append((begin, end))
    for span in Counter(source_spans) - Counter(text[begin:end] for begin, end in places):  # that of notes.txt-Datei
        for match in re.finditer(rf"(?<![\w/.-]){re.escape(span)}(?={_ENDING})", text):
            if not any(begin < match.end() and match.start() < end for begin, end in places):
                places.append(match.span())
    return sorted(places)


def mask(text: str) -> Masked:
    """Replaces what is not language with symbols, numbered from 1, or the first of it if that are too many.

    A text that has symbols already, in order or behind a similar text, stays as it is. Raises as ``spans_of``.
    """
    places = spans_of(text)[:MOST]
    spans = tuple(text[begin:end] for begin, end in places)
    if f" {MATCH} " in text and all(map(SYMBOL.fullmatch, spans)):
        return Masked(text, ())
    return Masked(replaced(text, places, SYMBOLS), () if spans == SYMBOLS[: len(spans)] else spans)


def mask_pair(source: str, target: str) -> tuple[str, str] | None:
    """Returns both texts with symbols, equal ones for equal spans; None if the spans differ, or are too many."""
    places = spans_of(source)
    spans = [source[begin:end] for begin, end in places]
    others = spans_of_translation(target, spans)
    if any("$" in target[begin:end] and target[begin:end] not in spans for begin, end in others):
        spans = numbered(spans) or spans
    if len(places) > len(SYMBOLS) or len(places) != len(others):
        return None
    numbers = list(range(len(spans)))
    symbols, spans = [], list(map(essential, spans))
    for begin, end in others:
        number = next((n for n in numbers if spans[n] == essential(target[begin:end])), None)
        if number is None:
            return None
        numbers.remove(number)
        symbols.append(SYMBOLS[number])
    return replaced(source, places, SYMBOLS), replaced(target, others, symbols)


def replaced(text: str, places: Sequence[Span], symbols: Sequence[str]) -> str:
    """Returns a text with a symbol at each of its places."""
    parts, reached = [], 0
    for (begin, end), symbol in zip(places, symbols, strict=False):
        parts += [text[reached:begin], symbol]
        reached = end
    return "".join([*parts, text[reached:]])


def essential(span: str) -> str:
    """Returns a span without what only translators read: names and examples of Android's ``<xliff:g>``."""
    return re.sub(r"<xliff:g\b[^<>]*>", "<xliff:g>", span)


def by_place(spans: Sequence[str]) -> list[str]:
    """Returns those placeholders that stand for values by their order, such as ``%s``."""
    return [span for span in spans if _BY_PLACE.fullmatch(span)]


def numbered(spans: Sequence[str]) -> list[str] | None:
    """Returns placeholders of printf with their numbers, ``%1$s`` for the first ``%s``; None if that cannot be."""
    numbers = count(1)
    if any("*" in span or "%" not in span for span in by_place(spans)):
        return None
    return [span.replace("%", f"%{next(numbers)}$") if _BY_PLACE.fullmatch(span) else span for span in spans]


def spans_in(translation: str, spans: Sequence[str]) -> Sequence[str] | None:
    """Returns what the symbols of a translation stand for.

    Tags that would cross take the order that they have in the text, and placeholders that stand for values by their
    order get numbers if it is another one: ``%2$s``.

    Args:
        translation: a text with symbols, ``<1>`` for the first of ``spans``.
        spans: what the symbols of the source stand for.

    Returns:
        None if placeholders have another order, and cannot have numbers.
    """
    written = [number for match in SYMBOL.finditer(translation) if 0 < (number := int(match[1])) <= len(spans)]
    ordered = [number for number in dict.fromkeys(written) if _BY_PLACE.fullmatch(spans[number - 1])]
    found = nested_spans(translation, spans)
    return found if ordered == sorted(ordered) else numbered(found)


def restored(translation: str, spans: Sequence[str]) -> str:
    """Returns a translation with the spans in place of symbols; a symbol that is none, or comes again, is left out."""
    left = dict(enumerate(spans, 1))
    return _SYMBOL_AND_SPACE.sub(
        lambda match: match[1] + left.pop(int(match[2])) if int(match[2]) in left else "", translation
    )


def own_symbols(text: str) -> list[Span]:
    """Returns where the symbols are that a translation of a text must have: those behind ``MATCH``, if it is there."""
    before, sign, _ = text.rpartition(f" {MATCH} ")
    return [match.span() for match in SYMBOL.finditer(text, len(before) + len(sign))]
