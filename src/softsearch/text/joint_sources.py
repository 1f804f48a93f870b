"""Lines with one source for each member of an ensemble, ``a man <and> un homme``, and the tokenizer that reads them."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from softsearch.errors import InputError
from softsearch.text.corpus import is_blank
from softsearch.text.moses import tokenize
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import SOURCE_SEPARATOR, UNK

_SEPARATOR = re.compile(rf"(?<!\S){SOURCE_SEPARATOR}(?!\S)")


def join_sources(sources: Sequence[str]) -> str:
    """Returns a line with several sources of one sentence; "" if all are blank."""
    return "" if all(map(is_blank, sources)) else f" {SOURCE_SEPARATOR} ".join(sources)


def split_sources(line: str) -> list[str]:
    """Returns the sources of a line, usually one."""
    sources = _SEPARATOR.split(line)
    return [source.strip() for source in sources] if len(sources) > 1 else sources


def tokenize_sources(line: str, langs: str) -> str:
    """Tokenises each source of a line by the rules of its language; ``langs`` is, for example, ``en`` or ``en+fr``."""
    lang_by_place = langs.split("+")
    sources = enumerate(split_sources(line))
    return join_sources(
        [tokenize(source, lang_by_place[min(place, len(lang_by_place) - 1)]) for place, source in sources]
    )


class JointSources(SentencePieceTokenizer):
    """The source tokenizers of an ensemble's members side by side: each encodes its own source of a line.

    The ids are those of the first source, then those of the second one plus the size of the first vocabulary, and so
    on, so an id identifies its source. Everything else is the first member's.
    """

    reads_several_sources = True
    reads_symbols = False  # the tags between its sources are none

    def __init__(self, tokenizers: Sequence[SentencePieceTokenizer]) -> None:
        super().__init__(tokenizers[0].model)
        self.tokenizers = tokenizers
        self._begins = list(accumulate((t.vocab_size for t in tokenizers), initial=0))[:-1]
        self.unknown_ids = frozenset(begin + UNK for begin in self._begins)
        self.fingerprint = " ".join(tokenizer.fingerprint for tokenizer in tokenizers)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the members, for worker processes."""
        return type(self), (self.tokenizers,)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of all sources in a line; none for a blank line.

        Raises:
            InputError: the number of sources with text differs from that of members, or one holds a lone surrogate.
        """
        if is_blank(text):
            return []
        sources, expected = split_sources(text), len(self.tokenizers)
        with_text = sum(not is_blank(source) for source in sources)
        if not with_text == len(sources) == expected:
            raise InputError(
                f"{text[:40]!r} has {len(sources)} sources, {with_text} of them with text; expected {expected}, one "
                f"for each model, and {SOURCE_SEPARATOR} nowhere else"
            )
        parts = zip(self.tokenizers, self._begins, sources, strict=True)
        return [begin + token for tokenizer, begin, source in parts for token in tokenizer.encode(source)]

    def unknown(self, text: str) -> list[str]:
        """Returns the parts of the sources that the members' vocabularies lack."""
        pairs = zip(self.tokenizers, split_sources(text), strict=True)
        return [each for tokenizer, source in pairs for each in tokenizer.unknown(source)]

    def ids_of_member(self, ids: Sequence[int], place: int) -> list[int]:
        """Returns the ids for the member at ``place``, as in its own vocabulary."""
        begin = self._begins[place]
        return [token - begin for token in ids if 0 <= token - begin < self.tokenizers[place].vocab_size]

    def decode(self, ids: Sequence[int], *, joined: bool = True) -> str:
        """Returns the line of ids."""
        return join_sources(
            [t.decode(self.ids_of_member(ids, place), joined=joined) for place, t in enumerate(self.tokenizers)]
        )

    def read_pieces(self, text: str, ids: Sequence[int]) -> list[str]:
        """Returns the names of a line's ids, with letters for what the members' vocabularies lack."""
        members = zip(self.tokenizers, split_sources(text), strict=True)
        parts = (t.read_pieces(part, self.ids_of_member(ids, place)) for place, (t, part) in enumerate(members))
        return [piece for part in parts for piece in part]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the names of ids; those of the special tokens are the first member's."""
        return [piece for place, t in enumerate(self.tokenizers) for piece in t.pieces(self.ids_of_member(ids, place))]
