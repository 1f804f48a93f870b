"""Required contents of translations in a model's units: glossary terms, and text to copy.

Text to copy that the vocabulary cannot write becomes UNK, which is replaced afterwards.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from softsearch.errors import ConfigError
from softsearch.runtime.glossary import Wanted
from softsearch.runtime.placeholders import fill_placeholders, set_apart
from softsearch.runtime.system import System
from softsearch.runtime.translation import Candidate, Part
from softsearch.search.terms import Spelling, Term, Terms
from softsearch.text.id_mapping import texts_of_ids
from softsearch.text.keep import Kept
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import SYMBOL, UNK

_PLACEHOLDER = "\U0010fe00"  # a private character that stands for UNK


class Required(NamedTuple):
    """The required contents of a sentence's translation."""

    terms: Terms | None  # those that the model can write
    unwritable: tuple[Term, ...] = ()
    placeholders: tuple[Kept, ...] = ()  # text to copy in place of UNK

    def missing_in(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """The terms, in the source's language, that a translation (tokens without EOS) lacks."""
        lacking: list[Term] = list(self.unwritable)
        if self.terms is not None:
            lacking += [t for t, n in zip(self.terms.required, self.terms.missing_in(tokens), strict=True) if n]
        return tuple(term.source for term in lacking)


class TermEncoder:
    """Encodes the required contents of translations.

    Args:
        tokenizer: the target's tokenizer.
        vocab_size: the model's target vocabulary size; the tokenizer may lack the last ids.
        form: turns plain text into the form that the model writes; None if it writes plain text.
    """

    def __init__(
        self, tokenizer: SentencePieceTokenizer, vocab_size: int, form: Callable[[str], str] | None = None
    ) -> None:
        self._tokenizer, self._vocab_size, self._form = tokenizer, vocab_size, form
        self._spell = lru_cache(100_000)(self._spelled)
        self._terms = lru_cache(32)(self._automaton)  # a few MB each

    @cached_property
    def texts(self) -> list[str]:
        """The text of each token, see ``texts_of_ids``."""
        texts = texts_of_ids(self._tokenizer)
        texts[UNK] = _PLACEHOLDER
        return texts + [""] * (self._vocab_size - len(texts))

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.texts)

    def require(self, wanted: Wanted | None) -> Required:
        """The required contents in the model's units, without alternatives that the model cannot write.

        Raises:
            ConfigError: a model of tokenised text cannot copy text.
        """
        terms, kept = wanted or Wanted()
        if kept and self._form is not None:
            raise ConfigError(
                "the model reads lower-cased, tokenised text, which cannot be kept unchanged; leave out keep"
            )
        placeholders = tuple(each for each in kept if not self._copies(each.text))
        copied = [each.text for each in kept if each not in placeholders]
        found = [*terms, *(self._copied(each, copied.count(each)) for each in dict.fromkeys(copied))]
        spelled = [
            term._replace(alternatives=tuple(s for each in term.alternatives if (s := self._spell(each))))
            for term in found
        ]
        writable = [term for term in spelled if term.alternatives]
        if placeholders:
            names = " ".join(each.text for each in placeholders)
            writable.append(Term((_PLACEHOLDER,), len(placeholders), whole_words=False, source=names))
        unwritable = tuple(term for term in spelled if not term.alternatives)
        return Required(self._terms(tuple(writable)) if writable else None, unwritable, placeholders)

    def complete(
        self, system: System, candidates: Sequence[Sequence[Candidate]], required: Sequence[Required]
    ) -> list[list[Candidate]]:
        """The translations of each part with the copied text, and the terms that each lacks."""
        every = [(each, needed) for n_best, needed in zip(candidates, required, strict=True) for each in n_best]
        found, placeholders = [each for each, _ in every], [needed.placeholders for _, needed in every]
        texts = fill_placeholders(system, found, placeholders)
        completed = iter(
            each._replace(text=_apart(text, each.part), missing_terms=needed.missing_in(each.hypothesis.tokens))
            for text, (each, needed) in zip(texts, every, strict=True)
        )
        return [[next(completed) for _ in n_best] for n_best in candidates]

    def _copied(self, text: str, times: int) -> Term:
        """Text to copy; a symbol is written no more often than the source has it."""
        is_symbol = self._tokenizer.reads_symbols and SYMBOL.fullmatch(text) is not None
        return Term((text,), times, source=text, exact=is_symbol)

    def _automaton(self, required: tuple[Term, ...]) -> Terms:
        return Terms(required, self._spelling)

    def _copies(self, text: str) -> bool:
        """Tells whether the vocabulary can write exactly this text."""
        return self._spell(text) == text[:: -1 if self._tokenizer.reverse else 1]

    def _spelled(self, text: str) -> str:
        """A target text as the tokens write it, or "" if the vocabulary lacks a part of it."""
        ids = self._tokenizer.encode(text if self._form is None else self._form(text))
        return "" if UNK in ids else "".join(self.texts[token] for token in ids).strip(" ")


def _apart(text: str, part: Part) -> str:
    return set_apart(text, part.text, part.wanted.kept) if part.wanted and part.wanted.kept else text
