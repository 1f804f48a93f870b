"""Test sets: sources and references, as text and as token ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from softsearch.data.corpora.base import ParallelSource, Picture, TextForm
from softsearch.errors import CorpusError
from softsearch.text.features import Features, with_features
from softsearch.text.filters import read_parallel
from softsearch.text.languages import languages_of
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import LANGUAGE_TAG, UNK, language_tag

Ids = list[Sequence[int]]  # per line, without BOS and EOS


@dataclass(frozen=True)
class HeldOutText:
    """Sources and their references, line by line as in the files; ``features`` if sources are feature vectors.

    References of split text (``joiner``) are joined, like
    translations; ``split_references`` are as in the file.
    """

    name: str
    sources: list[str]
    references: list[str]
    text_form: TextForm
    src_lang: str
    tgt_lang: str
    features: Features | None = None
    draw: Callable[[Features], Picture | None] = lambda _features: None  # the picture that features describe
    split_references: list[str] | None = None
    _encoded: dict[tuple[str, ...], tuple[Ids, Ids]] = field(init=False, default_factory=dict)

    @property
    def lines(self) -> tuple[list[str], list[str]]:
        """Returns sources and references."""
        return self.sources, self.references

    def picture(self, index: int) -> Picture | None:
        """Returns a source's picture, if it is one."""
        return None if self.features is None else self.draw(self.features[index])

    def encode(self, tokenizers: Tokenizers) -> tuple[Ids, Ids]:
        """Returns token ids of both sides, computed once per pair of tokenizers."""
        key = tuple(tokenizer.fingerprint for tokenizer in tokenizers)
        if key not in self._encoded:
            split = self.split_references if tokenizers[1].joiner else None
            sides = self.sources_for(tokenizers[0]), split or self.references
            src, tgt = ([t.encode(line) for line in side] for t, side in zip(tokenizers, sides, strict=True))
            starts = map(languages_of(tokenizers[0]).start, src)
            tgt = [[*start, *ids] for start, ids in zip(starts, tgt, strict=True)]
            self._encoded[key] = with_features(src, self.features), [*tgt]
        return self._encoded[key]

    def sources_for(self, tokenizer: SentencePieceTokenizer) -> list[str]:
        """Returns the sources in the form that a model with this tokenizer reads.

        Multilingual models use tags (``softsearch.data.Multilingual``): a line without a tag
        gets that of the target language, if it is in the vocabulary. A tag that is not in it is removed, so that a
        model of one language pair reads the same text. Lines with several sources are not changed.
        """
        if tokenizer.reads_several_sources:
            return self.sources
        if (languages := languages_of(tokenizer)).sources:
            return list(languages.tagged(self.sources, self.tgt_lang, self.src_lang))
        known = {tag for tag in self._tags if len(ids := tokenizer.encode(tag)) == 1 and ids[0] != UNK}
        tag = f"{language_tag(self.tgt_lang)} "
        start = tag if tag[:-1] in known else ""
        return [
            line if first in known else rest if LANGUAGE_TAG.fullmatch(first) else start + line
            for line in self.sources
            for first, _, rest in [line.partition(" ")]
        ]

    def joined(self, tokenizer: SentencePieceTokenizer) -> "HeldOutText":
        """Returns the text with references in the form in which this tokenizer writes translations."""
        if not tokenizer.joiner:
            return self
        return replace(
            self, references=[*map(tokenizer.normalize_like_decode, self.references)], split_references=self.references
        )

    @cached_property
    def _tags(self) -> set[str]:
        firsts = {line.partition(" ")[0] for line in self.sources}
        return {language_tag(self.tgt_lang), *filter(LANGUAGE_TAG.fullmatch, firsts)}

    def select(self, indices: Sequence[int]) -> "HeldOutText":
        """Returns some of the sentences, with their cached token ids."""
        sources, references = ([side[index] for index in indices] for side in self.lines)
        features = None if self.features is None else self.features[list(indices)]
        split = None if self.split_references is None else [self.split_references[index] for index in indices]
        selected = replace(self, sources=sources, references=references, features=features, split_references=split)
        for key, (src, tgt) in self._encoded.items():
            selected._encoded[key] = [src[index] for index in indices], [tgt[index] for index in indices]
        return selected


def read_split(source: ParallelSource, split: str, cache_dir: Path, advice: str) -> HeldOutText:
    """Reads a split of a run's data.

    Raises:
        CorpusError: a file cannot be read, or there is no such split; the message ends with ``advice``.
    """
    splits = source.files(cache_dir)
    if split not in splits:
        raise CorpusError(f"the data has no split {split!r}, found {', '.join(splits)}; {advice}")
    corpus, features = read_parallel(*splits[split], keep_empty=True), source.split_features(split, cache_dir)
    languages, name = (source.src_lang, source.tgt_lang), ", ".join(path.name for path in splits[split])
    return HeldOutText(name, corpus.src, corpus.tgt, source.text_form, *languages, features, source.picture)
