"""Lines of messages through a model: what is not language passes as symbols, and each must come back once."""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Any

from softsearch import Translation
from softsearch.extras.localise.fill import Translate, Written
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.spans import unmask
from softsearch.text import SentencePieceTokenizer
from softsearch.text.parts import MATCH, Masked, mask


def options_for(tokenizer: SentencePieceTokenizer) -> Mapping[str, Any]:
    """Returns the options of ``Translator.translate`` for lines of messages; symbols are kept without one."""
    return {"confidence": True} if tokenizer.reads_symbols else {"confidence": True, "keep_usual": True}


def reads_matches(tokenizer: SentencePieceTokenizer) -> bool:
    """Tells whether a model was trained with ``data.memory=true``."""
    return MATCH in tokenizer.vocabulary()


def translation(
    search: Callable[[list[str]], Sequence[Translation]], tokenizer: SentencePieceTokenizer, memory: Memory
) -> Translate:
    """Returns a function that translates lines of messages, in which all spans that are not language stay.

    Args:
        search: translates lines, with ``options_for`` the model.
        tokenizer: the model's, of the source; a model that knows no symbols reads the spans as text.
        memory: where a model that was trained with ``data.memory=true`` has its matches from.
    """
    symbols, matches = tokenizer.reads_symbols, reads_matches(tokenizer)

    def translate(lines: Sequence[str]) -> list[Written]:
        masked = [mask(line) if symbols else Masked(line, ()) for line in lines]
        sources = [each.text for each in masked]
        found = search(memory.with_similar(sources) if matches else sources)
        return [_written(each, own) for each, own in zip(found, masked, strict=True)]

    return translate


def _written(found: Translation, masked: Masked) -> Written:
    """A translation with the spans of its message; "" if it is cut off, or does not have each of them once."""
    text = "" if found.truncated else found.text
    if text and masked.spans:
        text = unmask(text, masked.spans) or ""
    sure = None if found.confidence is None else exp(found.confidence.mean_log_prob)
    return Written(text, sure, found.unknown, found.missing_terms if text else ())
