"""Lines of messages through a model: what is not language passes as symbols, and each must come back once."""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Any

from softsearch import Translation
from softsearch.extras.localise.fill import Translate, Written
from softsearch.extras.localise.spans import unmask
from softsearch.text import SentencePieceTokenizer
from softsearch.text.parts import Masked, mask


def options_for(tokenizer: SentencePieceTokenizer) -> Mapping[str, Any]:
    """Returns the options of ``Translator.translate`` for lines of messages; symbols are kept without one."""
    return {"confidence": True} if tokenizer.reads_symbols else {"confidence": True, "keep_usual": True}


def translation(search: Callable[[list[str]], Sequence[Translation]], *, symbols: bool) -> Translate:
    """Returns a function that translates lines of messages, in which all spans that are not language stay.

    Args:
        search: translates lines, with ``options_for`` the model.
        symbols: whether the model knows symbols; otherwise it reads the spans as text.
    """

    def translate(lines: Sequence[str]) -> list[Written]:
        masked = [mask(line) if symbols else Masked(line, ()) for line in lines]
        found = search([each.text for each in masked])
        return [_written(each, own) for each, own in zip(found, masked, strict=True)]

    return translate


def _written(found: Translation, masked: Masked) -> Written:
    """A translation with the spans of its message; "" if it is cut off, or does not have each of them once."""
    text = "" if found.truncated else found.text
    if text and masked.spans:
        text = unmask(text, masked.spans) or ""
    sure = None if found.confidence is None else exp(found.confidence.mean_log_prob)
    return Written(text, sure, found.unknown)
