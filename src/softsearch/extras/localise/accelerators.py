"""Accelerators: the letter of a menu entry that is pressed with Alt, marked with ``_``, ``&`` or ``~`` before it."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from typing import NamedTuple

from softsearch.text.parts import spans_of

MARKERS = "_&~"
_MARKED = {marker: re.compile(rf"{marker}(?=[^\W_])(?!\w+;)") for marker in MARKERS}  # &lt; is an entity
_ALONE = {marker: re.compile(rf"(?<!{marker}){marker}(?!{marker})") for marker in MARKERS}  # && is the sign itself
_AT_START = {marker: re.compile(rf"(?<!\w){marker}\w(?!\w*;)") for marker in MARKERS}
_BRACKETED = re.compile(r"\s?\([_&~]\w\)")  # behind text of scripts without such letters
_MIN_SHARE = 0.02  # of the messages with one, so that a marker is believed without a header
_LETTER = re.compile(r"[A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u052f]")  # that keyboards have
_MOST_WORDS = 6  # of a text with a marker inside a word; in longer ones that is a name, such as lo_list


class Accelerated(NamedTuple):
    """A text without its accelerator, and the marker and letter of that; both "" if there is none, or several."""

    text: str
    marker: str = ""
    letter: str = ""


def take_off(text: str, markers: str) -> Accelerated:
    """Takes the accelerator off a text; ``markers`` are those that its catalog uses."""
    for marker in markers:
        alone = [*islice(_ALONE[marker].finditer(text), 2)]
        found = _MARKED[marker].match(text, alone[0].start()) if len(alone) == 1 else None
        if found and not _is_in_name(text, found.start()):
            letter = text[found.end()]
            if bracketed := _BRACKETED.search(text):
                return Accelerated(text[: bracketed.start()] + text[bracketed.end() :], marker, letter)
            return Accelerated(text[: found.start()] + text[found.end() :], marker, letter)
    return Accelerated(text)


def _is_in_name(text: str, at: int) -> bool:
    """Tells whether a marker is in what is not language, or inside a word of a long text."""
    is_inner = at > 0 and text[at - 1].isalnum()
    return (is_inner and _is_long(text)) or any(begin <= at < end for begin, end in spans_of(text))


def _is_long(text: str) -> bool:
    return len(text.split()) > _MOST_WORDS


def put_on(text: str, marker: str, letter: str, used: Collection[str] = ()) -> str:
    """Marks a letter of a translation: the source's own, else the first of a word, else any, none of ``used``.

    Texts without a letter of that kind, such as Japanese, get it in brackets behind them, as is usual: ``(~F)``.
    """
    taken = {each.casefold() for each in used}
    spans = spans_of(text)
    letters = [
        at for at in (match.start() for match in _LETTER.finditer(text)) if not any(b <= at < e for b, e in spans)
    ]
    if not letters:
        end = len(text.rstrip(" .:\u2026\uff1a"))
        return f"{text[:end]}({marker}{letter.upper()}){text[end:]}"
    firsts = [at for at in letters if at == 0 or not text[at - 1].isalnum()]
    letters = firsts if firsts and _is_long(text) else letters
    same = [at for at in letters if text[at].casefold() == letter.casefold()]
    free = [at for at in (*same, *firsts, *letters) if text[at].casefold() not in taken]
    at = (free or same or firsts or letters)[0]
    return text[:at] + marker + text[at:]


def markers_of(pairs: Iterable[tuple[str, str]], others: Iterable[str] = (), declared: str = "") -> str:
    """Returns the markers of a catalog: those that messages and their translations have in common, or begin words of.

    A name that both have, such as ``lo_list``, is none.

    Args:
        pairs: messages and translations.
        others: messages without a translation; in these a marker stands at the start of a word.
        declared: the marker that the catalog's header names.
    """
    total, counts = 0, Counter[str]()
    for source, target in pairs:
        total += 1
        counts.update(m for m in MARKERS if take_off(source, m).marker and _is_marked_anew(source, target, m))
    for source in others:
        total += 1
        counts.update(m for m in MARKERS if take_off(source, m).marker and _AT_START[m].search(source))
    return "".join(m for m in MARKERS if m == declared or counts[m] > _MIN_SHARE * total)


def _is_marked_anew(source: str, target: str, marker: str) -> bool:
    """Tells whether a translation has an accelerator, other than in a word of the source that is the same in both."""
    word = next((each for each in re.findall(r"[\w&~]+", source) if marker in each[1:]), "")
    return bool(take_off(target, marker).marker) and not (word and word in target)
