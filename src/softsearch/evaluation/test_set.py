"""The test set: sources and references, as text and as token ids."""

from dataclasses import dataclass

from softsearch.data.corpora.base import TextForm
from softsearch.text.tokenizer import Tokenizer

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

    @property
    def lines(self) -> tuple[list[str], list[str]]:
        """Both sides."""
        return self.sources, self.references

    def encode(self, tokenizers: tuple[Tokenizer, Tokenizer]) -> tuple[Ids, Ids]:
        """Token ids of both sides."""
        src, tgt = ([t.encode(line) for line in side] for t, side in zip(tokenizers, self.lines, strict=True))
        return src, tgt
