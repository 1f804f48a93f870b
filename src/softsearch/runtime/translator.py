"""Text in, text out: tokenizers, limits, search and the way back, over a verified bundle."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.searches import Search, collects_alignments, make_search, needs_alignments, score_together
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.splitting import split_text
from softsearch.runtime.system import BATCH_TOKENS, open_tokenizers
from softsearch.search.batching import translate_ids
from softsearch.search.exact import ExactSearch
from softsearch.search.interface import Hypothesis, StepFunction
from softsearch.text.corpus import is_blank
from softsearch.text.unknown_words import UnknownWords
from softsearch.text.vocabulary import EOS, LANGUAGE_TAG, UNK

# A line is split into at most about this many times the model's limit; what is longer is no line of text.
_MAX_PARTS = 16
_LINE_ENDS = re.compile(r"[\r\n]+")


@dataclass(frozen=True)
class Translation:
    """One translation of one line; of a line that had to be split, its parts' translations joined by spaces."""

    text: str
    score: float  # log_prob after the length penalty; higher is better
    log_prob: float  # natural log
    truncated: bool  # the length limit was reached before the model ended the sentence
    src_pieces: tuple[str, ...]  # in the order of the text, with the final </s>
    tgt_pieces: tuple[str, ...]  # in the order of the text, with the final </s>, unless truncated
    alignments: NDArray[np.float32] | None  # [len(tgt_pieces), len(src_pieces)]
    optimal: bool | None = None  # of exact search: proven to be the model's best


class _Part(NamedTuple):
    """A line, or as much of it as the model takes at once."""

    text: str
    ids: list[int]  # with EOS


class Translator:
    """Translates lines with a bundle.

    Args:
        bundle: an open bundle, or the folder of one: whose tokenizers and limits hold.
        search: how to search; by default what the bundle recommends.
        step_fn: what computes; by default the bundle's graphs.
        dictionary: translations of source words that replace unknown words, or copies where it lacks them, see
            :class:`~softsearch.text.unknown_words.UnknownWords`; None to leave them unknown.
        batch_tokens: the most source tokens, padding included, that are translated at once.
        threads: batches translated side by side; by default as many as this process has cores.

    Raises:
        BundleError: the bundle is missing, altered, inconsistent or of a newer format.
        ConfigError: there is a dictionary, and the model is not over words, has no attention, or ``search`` does not
            collect it.
    """

    def __init__(
        self,
        bundle: Bundle | Path | str,
        search: Search | None = None,
        *,
        step_fn: StepFunction | None = None,
        dictionary: Mapping[str, str] | None = None,
        batch_tokens: int = BATCH_TOKENS,
        threads: int | None = None,
    ) -> None:
        opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        self.manifest = opened.manifest
        self._src_tokenizer, self._tgt_tokenizer = open_tokenizers(opened)
        self._search = make_search(opened.manifest) if search is None else search
        alignments = collects_alignments(self._search)
        looks = needs_alignments(self._search)
        self._step_fn = OnnxStepFunction(opened, alignments=looks) if step_fn is None else step_fn
        if looks and not self._step_fn.has_attention:
            raise ConfigError(
                f"bundle {opened.path}: alignments, a coverage penalty or replacing unknown words need a model "
                "with attention, and this one has none; leave the option out"
            )
        self._unknown_words: UnknownWords | None = None
        if dictionary is not None:
            self._unknown_words = UnknownWords(self._src_tokenizer, self._tgt_tokenizer, dictionary)
            if not alignments:
                raise ConfigError(
                    f"bundle {opened.path}: replacing unknown words needs a search that collects alignments; leave the "
                    "option out"
                )
        self._batch_tokens = batch_tokens
        self._threads = _cores() if threads is None else threads

    def translate(
        self, lines: Iterable[str], *, prefixes: Sequence[str] | None = None, first_line: int = 1
    ) -> list[list[Translation]]:
        """Translates lines; each is one sentence, or is split into several if the model cannot take it whole.

        A line that shows nothing (empty, white space, control characters) is translated as "" without the model.
        Line ends inside a line are spaces.

        Args:
            lines: the text.
            prefixes: what the translation of each line begins with, "" for anything; of a line that is split, of its
                first part.
            first_line: the number of the first line, for messages.

        Returns:
            For each line its ``n_best`` translations, best first (fewer where the search found fewer).

        Raises:
            InputError: a line holds a lone surrogate or is far too long, the model returned NaN, or a prefix cannot be
                written with the model's vocabulary.
            ConfigError: there are prefixes, and the model writes from right to left or the search takes none.
        """
        parts = [self._encode(line, number) for number, line in enumerate(lines, first_line)]
        begins = None if prefixes is None else self._begins(parts, prefixes, first_line)
        found = iter(
            translate_ids(
                self._step_fn,
                self._search,
                [part.ids for line in parts for part in line],
                batch_tokens=self._batch_tokens,
                prefixes=begins,
                workers=self._threads,
            )
        )
        return [self._line(line, [next(found) for _ in line]) for line in parts]

    def _encode(self, line: str, number: int) -> list[_Part]:
        """The parts of a line; none if the line is blank."""
        text = _LINE_ENDS.sub(" ", line)
        if is_blank(text):
            return []
        limit = self.manifest.max_src_tokens
        try:
            ids = self._src_tokenizer.encode(text)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
        if len(ids) < limit:
            return [_Part(text, [*ids, EOS])]
        if len(ids) > _MAX_PARTS * limit:
            raise InputError(
                f"line {number} has {len(text)} characters, {len(ids)} tokens; expected at most {_MAX_PARTS * limit} "
                f"tokens (the model takes {limit} at once), so put one sentence on each line"
            )
        encode, tag = self._src_tokenizer.encode, self._tag(text)
        texts = [tag + part for part in split_text(text.removeprefix(tag), lambda p: len(encode(tag + p)) < limit)]
        return [_Part(part, [*encode(part), EOS]) for part in texts]

    def _begins(self, parts: list[list[_Part]], prefixes: Sequence[str], first_line: int) -> list[list[int]]:
        """The token ids that the translation of each part begins with."""
        if self._tgt_tokenizer.reverse:
            raise ConfigError(
                "target prefixes were given, but this model writes from the end of a text to its start; leave them out"
            )
        begins: list[list[int]] = []
        for number, (line, prefix) in enumerate(zip(parts, prefixes, strict=True), first_line):
            ids = self._tgt_tokenizer.encode(prefix)
            if UNK in ids:
                raise InputError(
                    f"line {number}: the model's vocabulary has not all of the prefix {prefix!r}; change it"
                )
            begins.extend([ids, *([] for _ in line[1:])][: len(line)])
        return begins

    def _tag(self, text: str) -> str:
        """The language tag that a text begins with, if the model knows it: each part must be told the language."""
        tag = re.match(rf"{LANGUAGE_TAG.pattern}\s+", text)
        return tag[0] if tag and len(self._src_tokenizer.encode(tag[0])) == 1 else ""

    def _line(self, parts: list[_Part], found: list[list[Hypothesis]]) -> list[Translation]:
        if not parts:
            return [Translation("", 0.0, 0.0, False, (), (), None)]
        # The n-th best of a split line is made of the n-th best of its parts.
        return [self._translation(parts, ranked) for ranked in zip(*found, strict=False)]

    def _translation(self, parts: list[_Part], hypotheses: Sequence[Hypothesis]) -> Translation:
        texts = [self._text(part, hypothesis) for part, hypothesis in zip(parts, hypotheses, strict=True)]
        written = [[*h.tokens] if h.truncated else [*h.tokens, EOS] for h in hypotheses]
        log_prob = sum(hypothesis.log_prob for hypothesis in hypotheses)
        return Translation(
            # What comes out is one line, for every tool that may read it.
            text=" ".join(" ".join(texts).splitlines()),
            score=(
                hypotheses[0].score
                if len(hypotheses) == 1
                else score_together(self._search, [h.score for h in hypotheses], [len(ids) for ids in written])
            ),
            log_prob=log_prob,
            truncated=any(hypothesis.truncated for hypothesis in hypotheses),
            optimal=all(h.optimal for h in hypotheses) if isinstance(self._search, ExactSearch) else None,
            src_pieces=tuple(piece for part in parts for piece in self._src_tokenizer.pieces(part.ids)),
            tgt_pieces=tuple(piece for ids in written for piece in self._tgt_tokenizer.pieces(ids)),
            alignments=_block_diagonal(
                [
                    h.alignments[np.ix_(self._tgt_tokenizer.text_order(tgt), self._src_tokenizer.text_order(part.ids))]
                    for part, tgt, h in zip(parts, written, hypotheses, strict=True)
                    if h.alignments is not None
                ]
            ),
        )

    def _text(self, part: _Part, hypothesis: Hypothesis) -> str:
        if self._unknown_words is None:
            return self._tgt_tokenizer.decode(hypothesis.tokens)
        return self._unknown_words(part.text, hypothesis.tokens, hypothesis.alignments)


def _block_diagonal(blocks: Sequence[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    """The attention of a split line: its parts saw their own sources only."""
    if len(blocks) <= 1:
        return blocks[0] if blocks else None
    corners = np.cumsum([(0, 0), *(block.shape for block in blocks)], axis=0)
    whole = np.zeros(corners[-1], dtype=np.float32)
    for block, (row, column) in zip(blocks, corners[:-1], strict=True):
        whole[row : row + block.shape[0], column : column + block.shape[1]] = block
    return whole


def _cores() -> int:
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
