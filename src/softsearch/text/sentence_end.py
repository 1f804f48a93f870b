"""Punctuation that ends sentences in all scripts, by Unicode's properties and names."""

import unicodedata
from functools import cache

_OTHERS = {  # not ends of sentences in Unicode, or of another kind
    ";": "?",  # Greek question mark, as usually typed
    "\u037e": "?",
    "\u2026": ".",
    "\u17d6": ":",  # Khmer
}
_INSIDE = {"\u055e": "?", "\u055c": "!"}  # Armenian; inside the stressed word
_AFTER = ("Cf", "Pe", "Pf", "Pi", "Zs")  # closing brackets and quotation marks, spaces
_TERMINALS = (  # Unicode's property Sentence_Terminal, which Python lacks; a test compares it with regex
    "21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 "
    "17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F "
    "2024 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF A60E-A60F A6F3 A6F7 "
    "A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 FF01 FF0E "
    "FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD "
    "111DE-111DF 11238-11239 1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 "
    "11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 "
    "16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88 "
)
_SENTENCE_TERMINALS = frozenset(
    chr(code)
    for first, _, last in (part.partition("-") for part in _TERMINALS.split())
    for code in range(int(first, 16), int(last or first, 16) + 1)
)


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
    """Returns the kind of a mark as ``sentence_end`` does; "" for other characters."""
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
    return "." if is_shad or char in _SENTENCE_TERMINALS else ""


@cache
def _comes_after(char: str) -> bool:
    return char.isspace() or char in "\"'" or unicodedata.category(char) in _AFTER
