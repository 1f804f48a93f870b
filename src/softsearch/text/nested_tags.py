"""Tags that are symbols in a translation: if they are nested in the text, they are in the translation."""

import re
from collections.abc import Sequence

from softsearch.text.vocabulary import SYMBOL

_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")
_UNCLOSED = frozenset({"br", "hr", "img", "wbr"})


def is_nested(text: str) -> bool:
    """Tells whether each tag of a text is closed, and within the one around it."""
    opened: list[str] = []
    for match in _TAG.finditer(text):
        closes, name, is_empty = match.groups()
        if is_empty or name.lower() in _UNCLOSED:
            continue
        if not closes:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened


def nested_spans(translation: str, spans: Sequence[str]) -> Sequence[str]:
    """Returns what the symbols of a translation stand for: ``spans``, but tags that would cross take the text's order.

    Args:
        translation: a text with symbols, ``<1>`` for the first of ``spans``.
        spans: what the symbols of the source stand for.
    """
    tags = [number for number, span in enumerate(spans, 1) if _TAG.fullmatch(span)]
    written = list(dict.fromkeys(n for match in SYMBOL.finditer(translation) if (n := int(match[1])) in tags))
    ours, theirs = ("".join(spans[n - 1] for n in numbers) for numbers in (written, tags))
    if len(written) != len(tags) or is_nested(ours) or not is_nested(theirs):
        return spans
    changed = list(spans)
    for place, number in zip(written, tags, strict=True):
        changed[place - 1] = spans[number - 1]
    return changed
