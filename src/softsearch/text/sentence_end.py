"""Punctuation that ends sentences, of all scripts, by Unicode's properties and names."""

import unicodedata
from functools import cache

_OTHERS = {  # which Unicode does not call ends of sentences, or not by these kinds
    ";": "?",  # Greek's question mark, as it is mostly typed
    "\u037e": "?",
    "\u2026": ".",
    "\u17d6": ":",  # Khmer's
}
_INSIDE = {"\u055e": "?", "\u055c": "!"}  # Armenian's, which stand in the stressed word
_AFTER = ("Cf", "Pe", "Pf", "Pi", "Zs")  # closing brackets and quotation marks, spaces


def sentence_end(text: str) -> str:
    """Returns how a text ends: ``.``, ``?``, ``!`` or ``:`` for all marks of that kind, or "" without one."""
    last = next((char for char in reversed(text) if not _comes_after(char)), "")
    kind = end_mark(last) if last else ""
    return next((own for mark, own in _INSIDE.items() if kind in ("", ".") and mark in text), kind)


def without_end(text: str) -> str:
    """Returns a text without the full stops, question and exclamation marks at its end."""
    size = len(text)
    while size and text[size - 1] != ";" and end_mark(text[size - 1]) in (".", "?", "!"):
        size -= 1
    return text[:size].rstrip() if size < len(text) else text


@cache
def end_mark(char: str) -> str:
    """Returns the kind of a mark, as :func:`sentence_end`; "" for another character."""
    import regex  # which takes a tenth of a second, and the runtime lacks it

    if char in _OTHERS:
        return _OTHERS[char]
    name = unicodedata.name(char, "")
    if "QUESTION" in name or "INTERROBANG" in name:
        return "?"
    if "EXCLAMATION" in name:
        return "!"
    if name.endswith("COLON") and not name.endswith("SEMICOLON"):
        return ":"
    is_shad = name.startswith("TIBETAN") and "SHAD" in name  # Tibetan has one mark for clauses and sentences
    return "." if is_shad or regex.match(r"\p{Sentence_Terminal}", char) else ""


@cache
def _comes_after(char: str) -> bool:
    return char.isspace() or char in "\"'" or unicodedata.category(char) in _AFTER
