"""Banned tokens: named in options, numbered in searches."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from softsearch.errors import ConfigError
from softsearch.text.corpus import read_lines
from softsearch.text.vocabulary import SPECIALS

if TYPE_CHECKING:  # softsearch --version needs no SentencePiece
    from softsearch.text.tokenizer import SentencePieceTokenizer


def expand_names(names: Sequence[str]) -> list[str]:
    """Expands names of tokens from the command line: ``@FILE`` stands for the lines of FILE.

    Raises:
        CorpusError: a file cannot be read.
    """
    return [line for name in names for line in (read_lines(Path(name[1:])) if name.startswith("@") else [name])]


def banned_tokens(tokenizer: "SentencePieceTokenizer", names: Sequence[str]) -> tuple[int, ...]:
    """The ids of pieces by name; "Haus" means the pieces inside and at the beginning of words, if both exist.

    Raises:
        ConfigError: the target vocabulary has no such piece.
    """
    ids = {name: token for name, (token, _) in tokenizer.vocabulary().items()}
    ids |= {special: token for token, special in enumerate(SPECIALS)}
    tokens: list[int] = []
    for name in names:
        matches = {ids[form] for form in (name, f"\u2581{name}") if form in ids}
        if not matches:
            from softsearch.suggestions import similar  # only a mistake needs it

            near = similar(f"\u2581{name}", ids)
            advice = f"did you mean {near[0]!r}?" if near else "choose a piece as --alignments writes them"
            raise ConfigError(f"banned {name}: the target vocabulary has no such token; {advice}")
        tokens.extend(sorted(matches))
    return tuple(tokens)
