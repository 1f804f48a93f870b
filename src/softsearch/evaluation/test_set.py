"""The test set: sources and references, as text and as token ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from softsearch.data.corpora.base import TextForm
from softsearch.text.tokenizer import Tokenizer
from softsearch.text.vocabulary import LANGUAGE_TAG

Ids = list[list[int]]  # of each line, without BOS and EOS


@dataclass(frozen=True)
class HeldOutText:
    """Sources and their references, line by line as in the files."""

    name: str
    sources: list[str]
    references: list[str]
    text_form: TextForm
    src_lang: str
    tgt_lang: str
    _encoded: dict[tuple[str, ...], tuple[Ids, Ids]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    @property
    def lines(self) -> tuple[list[str], list[str]]:
        """Both sides."""
        return self.sources, self.references

    def encode(self, tokenizers: tuple[Tokenizer, Tokenizer]) -> tuple[Ids, Ids]:
        """Token ids of both sides, computed once for each pair of tokenizers."""
        key = tuple(tokenizer.fingerprint for tokenizer in tokenizers)
        if key not in self._encoded:
            src, tgt = (
                [tokenizer.encode(line) for line in side]
                for tokenizer, side in zip(tokenizers, self.lines, strict=True)
            )
            self._encoded[key] = src, tgt
        return self._encoded[key]


def group_by_language(sources: Sequence[str]) -> dict[str, list[int]]:
    """The indices of the sources for each language that their tags ask for; empty unless there are several."""
    indices: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        if tag := LANGUAGE_TAG.match(source):
            indices.setdefault(tag[1], []).append(index)
    return indices if len(indices) > 1 else {}
