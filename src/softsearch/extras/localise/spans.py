"""Symbols in pairs of messages, and back: what is not language is the same on both sides, or the pair is of no use."""

from collections.abc import Sequence

from softsearch.text.parts import SYMBOL, SYMBOLS, nested_spans, replaced, spans_of


def mask_pair(source: str, target: str) -> tuple[str, str] | None:
    """Returns both texts with symbols, equal ones for equal spans; None if the spans differ, or are too many."""
    places, others = spans_of(source), spans_of(target)
    if len(places) > len(SYMBOLS) or len(places) != len(others):
        return None
    spans = [source[begin:end] for begin, end in places]
    numbers = list(range(len(spans)))
    symbols = []
    for begin, end in others:
        number = next((n for n in numbers if spans[n] == target[begin:end]), None)
        if number is None:
            return None
        numbers.remove(number)
        symbols.append(SYMBOLS[number])
    return replaced(source, places, SYMBOLS), replaced(target, others, symbols)


def has_language(text: str) -> bool:
    """Tells whether a text has letters outside of what is not language."""
    places = spans_of(text)
    return any(char.isalpha() for char in replaced(text, places, [""] * len(places)))


def unmask(translation: str, spans: Sequence[str]) -> str | None:
    """Puts the spans back, tags nested; None unless each symbol occurs once, and no other does."""
    numbers = [int(match[1]) for match in SYMBOL.finditer(translation)]
    if sorted(numbers) != list(range(1, len(spans) + 1)):
        return None
    found = nested_spans(translation, spans)
    return SYMBOL.sub(lambda match: found[int(match[1]) - 1], translation)
