"""Lines too long for the model, cut where it hurts least."""

import re
from collections.abc import Callable

# From the best place to cut to the worst: after a sentence, after a clause, between words, between characters.
_BREAKS = tuple(
    re.compile(pattern)
    for pattern in (r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f])", r"(?<=[,;:])\s+|(?<=[\u3001\uff0c])", r"\s+", r"")
)


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Halves a text until every part fits, near the middle and at the strongest break that is there.

    Args:
        text: any text.
        fits: whether the model can take a part; must hold for single characters.

    Returns:
        The parts in order, without white space around them; nothing else of the text is lost.
    """
    text = text.strip()
    if len(text) <= 1 or fits(text):
        return [text] if text else []
    at = _break_near_middle(text)
    return split_text(text[:at], fits) + split_text(text[at:], fits)


def _break_near_middle(text: str) -> int:
    # Only the middle half is searched, so that both parts shrink and the recursion stays shallow.
    first, last = max(1, len(text) // 4), max(1, 3 * len(text) // 4)
    for pattern in _BREAKS:
        places = [match.end() for match in pattern.finditer(text, first, last) if 0 < match.end() < len(text)]
        if places:
            return min(places, key=lambda place: abs(place - len(text) // 2))
    return len(text) // 2
