"""What would break a program's build or its interface, found before a translation is written."""

import re
from collections import Counter

from softsearch.extras.localise import icu
from softsearch.extras.localise.accelerators import take_off
from softsearch.text.parts import SYMBOL, by_place, essential, is_nested, numbered, spans_of, spans_of_translation

_END = re.compile(r"(?:\.\.\.|[\u2026:?!.\uff1a\uff1f\uff01\u3002\u061f\u06d4])\Z")
_ENDS = str.maketrans({"\uff1a": ":", "\uff1f": "?", "\uff01": "!", "\u3002": ".", "\u061f": "?", "\u06d4": "."})


def problems(source: str, target: str, markers: str = "", *, may_number: bool = False) -> list[str]:
    """Returns what is wrong with a translation; an empty list if nothing is.

    Args:
        source: the message.
        target: its translation.
        markers: those of accelerators in its catalog.
        may_number: whether the translation may have ``%2$s`` in place of ``%s``.
    """
    texts = icu.pairs(icu.read(source), icu.read(target))
    if texts is None:
        return ["its plurals or selects are not those of the message"]
    if len(texts) > 1:
        return list(
            dict.fromkeys(problem for pair in texts for problem in problems(*pair, markers, may_number=may_number))
        )
    found = list[str]()
    if not target.strip():
        return ["the model found no complete translation"]
    (plain, marker, _), (own, own_marker, _) = take_off(source, markers), take_off(target, markers)
    found += _of_spans(plain, own, may_number=may_number)
    if SYMBOL.search(target) and not SYMBOL.search(source):
        found.append("it has a symbol of the model")
    if is_nested(source) and not is_nested(target):
        found.append("its tags are not nested")
    if source.count("\n") != target.count("\n"):
        found.append(f"it has {target.count(chr(10))} line breaks, the message {source.count(chr(10))}")
    if marker != own_marker:
        found.append("one of both has an accelerator, or another one")
    if ending(source) != ending(target):
        found.append(f"it ends with {ending(target) or 'no sign'}, the message with {ending(source) or 'none'}")
    return found


def _of_spans(source: str, target: str, *, may_number: bool) -> list[str]:
    """What is wrong with placeholders, tags and the like."""
    theirs = [source[begin:end] for begin, end in spans_of(source)]
    ours = [essential(target[begin:end]) for begin, end in spans_of_translation(target, theirs)]
    theirs = [*map(essential, theirs)]
    if may_number and any("$" in span and span not in theirs for span in ours):
        theirs = numbered(theirs) or theirs
    found = []
    if missing := Counter(theirs) - Counter(ours):
        found.append(f"it lacks {', '.join(sorted(missing))}")
    if surplus := Counter(ours) - Counter(theirs):
        found.append(f"it has {', '.join(sorted(surplus))}, which the message has not")
    if not found and by_place(ours) != by_place(theirs):
        found.append(f"its {', '.join(by_place(ours))} have another order than in the message")
    return found


def ending(text: str) -> str:
    """Returns the sign that a text ends with, as ASCII and the ellipsis; "" if there is none."""
    return sign_of(text.rstrip()).translate(_ENDS).replace("...", "\u2026")


def sign_of(text: str) -> str:
    """Returns the sign that a text ends with, as it is; "" if there is none."""
    match = _END.search(text)
    return match[0] if match else ""
