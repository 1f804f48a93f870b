"""Mappings from ids of one vocabulary to another one's, and to text."""

import re
from collections.abc import Callable, Sequence

from softsearch.errors import ConfigError
from softsearch.text.tokenizer import SentencePieceTokenizer

IdMapping = Callable[[Sequence[int]], list[int]]
_BYTES = 0x10FF00  # private characters that stand for bytes


def same_pieces(one: SentencePieceTokenizer, other: SentencePieceTokenizer) -> bool:
    """Returns whether ids are the same pieces of text in both vocabularies, for either direction of writing."""
    return one.model == other.model or list(one.vocabulary()) == list(other.vocabulary())  # in the order of ids


def id_mapping(one: SentencePieceTokenizer, other: SentencePieceTokenizer) -> IdMapping | None:
    """Returns a function from ids of ``one`` to ids of ``other``, without BOS and EOS; None if they are the same.

    With the same pieces the ids are at most reversed. Otherwise they are decoded and encoded again: text unknown to
    ``one`` is unknown to ``other`` too.
    """
    if not same_pieces(one, other):
        return lambda ids: other.encode(one.decode(ids, joined=False))
    return None if one.reverse == other.reverse else lambda ids: list(ids)[::-1]


def check_writes_alike(
    one: SentencePieceTokenizer, other: SentencePieceTokenizer, names: tuple[object, object]
) -> None:
    """Checks that models with these target tokenizers can form an ensemble; ``names`` are for messages.

    Raises:
        ConfigError: their pieces or their directions differ.
    """
    both = f"{names[0]} and {names[1]}"
    if not same_pieces(one, other):
        raise ConfigError(
            f"{both} have different target vocabularies ({one.vocab_size} and {other.vocab_size} pieces), expected the "
            "same pieces; train them on the same data with the same tokenizer, or let one rerank the other's results"
        )
    if one.reverse != other.reverse:
        raise ConfigError(
            f"{both} write in different directions, expected the same data.target_direction; use models of one "
            "direction, or let one rerank the other's results"
        )


def texts_of_ids(tokenizer: SentencePieceTokenizer) -> list[str]:
    """Returns each id's text, U+0020 for a space, backwards if the tokenizer is reversed; "" for special ids.

    Each byte has its own private character, and in split text a space follows each word.
    """
    texts, joiner = [""] * tokenizer.vocab_size, tokenizer.joiner.rstrip()
    for name, (token, _) in tokenizer.vocabulary().items():
        text = name.replace("\u2581", " ")
        if byte := re.fullmatch("<0x([0-9A-F]{2})>", name):
            text = chr(_BYTES + int(byte[1], 16))
        elif joiner:
            text = text[1:].removesuffix(joiner) if text.endswith(joiner) else f"{text[1:]} "
        texts[token] = text[::-1] if tokenizer.reverse else text
    return texts
