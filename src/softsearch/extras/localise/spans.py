"""Symbols of a translation become what they stand for again, if each is there."""

from collections.abc import Sequence

from softsearch.text.parts import SYMBOL, replaced, spans_in, spans_of


def has_language(text: str) -> bool:
    """Tells whether a text has letters outside of what is not language."""
    places = spans_of(text)
    return any(char.isalpha() for char in replaced(text, places, [""] * len(places)))


def unmask(translation: str, spans: Sequence[str]) -> str | None:
    """Puts the spans back, as ``spans_in``; None unless each symbol occurs once, and no other does."""
    numbers = [int(match[1]) for match in SYMBOL.finditer(translation)]
    if sorted(numbers) != list(range(1, len(spans) + 1)):
        return None
    found = spans_in(translation, spans)
    return None if found is None else SYMBOL.sub(lambda match: found[int(match[1]) - 1], translation)
