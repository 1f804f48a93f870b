"""Text as models read it, whatever their vocabulary: what looks the same is the same.

Whatever looks for text in a text, or compares texts, does so in this form, since a model that reads a term reads all
forms of it: glossaries, checks of references, copies of test sentences in the training data. A vocabulary decides
which form it reads (``softsearch.text.folding``); here it is the usual one, composed.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from softsearch.text.folding import TO_USUAL, compatible, invisible


@dataclass(frozen=True)
class ReadText:
    """A text as models read it, with the places of its characters in the original.

    Attributes:
        original: the text as it was given.
        text: with single spaces between words, without invisible characters, in the usual form.
    """

    original: str
    text: str

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Returns where ``text[begin:end]`` stands in the original, with all marks of its letters."""
        if self.original == self.text:
            return begin, end
        if begin < end:
            return self._places[begin][0], self._places[end - 1][1]
        at = self._places[begin][0] if begin < len(self.text) else len(self.original)
        return at, at

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """Begin and end in the original for each character of the text."""
        groups: list[tuple[int, int, str]] = []  # characters that no other ones change
        for at, char in enumerate(self.original):
            if form := _replaced(unicodedata.normalize("NFD", char), _forms()):
                if groups and (form[0] in _continuing() or unicodedata.combining(form[0])):
                    begin, _, before = groups.pop()
                    groups.append((begin, at + 1, before + form))
                else:
                    groups.append((at, at + 1, form))
        found: list[tuple[str, int, int]] = []
        for begin, end, form in groups:
            for char in unicodedata.normalize("NFC", form):
                if char == " " and (not found or found[-1][0] == " "):
                    continue
                found.append((char, begin, end))
        return [(begin, end) for _, begin, end in found[: len(self.text)]]


def as_read(text: str) -> ReadText:
    """Returns a text as models read it.

    White space becomes single spaces, none around the text. Characters that are not shown are dropped, except NUL.
    Letters are composed (Unicode's NFC); compatibility forms and look-alikes become the usual form. Case, superscripts,
    circled digits, fractions and letters of other scripts stay.
    """
    usual = text
    if not (text.isascii() and text.isprintable()):
        usual = unicodedata.normalize("NFC", _replaced(unicodedata.normalize("NFD", text), _forms()))
        usual = _replaced(usual, TO_USUAL)
    return ReadText(text, " ".join(usual.split()))


def _replaced(text: str, forms: Mapping[str, str]) -> str:
    """Replaces characters; several times as fast as str.translate."""
    return text if forms.keys().isdisjoint(text) else "".join([forms.get(char, char) for char in text])


@cache
def _forms() -> dict[str, str]:
    return compatible() | invisible()


@cache
def _continuing() -> frozenset[str]:
    """Characters that are not marks, and that one before them may be composed with."""
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(0x20000))
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    return frozenset(seconds | set(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)))))
