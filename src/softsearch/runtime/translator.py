"""Text in, text out: tokenizers, limits, search and the way back, over a verified bundle."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.splitting import split_text
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis
from softsearch.text.corpus import is_blank
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import EOS, LANGUAGE_TAG

BATCH_TOKENS = 1024
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


class Translator:
    """Translates lines with a bundle.

    Args:
        bundle: an open bundle, or the folder of one.
        beam: hypotheses kept per sentence; by default what the bundle recommends.
        n_best: translations per line, at most ``beam``.
        max_length: the most target tokens per sentence; by default a multiple of its source tokens, as in the bundle.
        batch_tokens: the most source tokens, padding included, that are translated at once.
        threads: batches translated side by side; by default as many as this process has cores.
        alignments: return the attention weights.

    Raises:
        BundleError: the bundle is missing, altered, inconsistent or of a newer format.
        ConfigError: an option is out of range.
    """

    def __init__(
        self,
        bundle: Bundle | Path | str,
        *,
        beam: int | None = None,
        n_best: int = 1,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        threads: int | None = None,
        alignments: bool = False,
    ) -> None:
        opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
        self.manifest = opened.manifest
        facts = opened.manifest
        self._src_tokenizer = _tokenizer(opened, facts.src_tokenizer, facts.src_vocab_size, reverse=facts.src_reversed)
        self._tgt_tokenizer = _tokenizer(opened, facts.tgt_tokenizer, facts.tgt_vocab_size, reverse=facts.tgt_reversed)
        self._step_fn = OnnxStepFunction(opened, alignments=alignments)
        self._search = BeamSearch(
            beam=self.manifest.beam if beam is None else beam,
            n_best=n_best,
            length_penalty=self.manifest.length_penalty,
            max_length_factor=self.manifest.max_length_factor if max_length is None else 0.0,
            max_length_offset=self.manifest.max_length_offset if max_length is None else max_length,
            alignments=alignments,
        )
        self._batch_tokens = batch_tokens
        self._threads = _cores() if threads is None else threads

    def translate(self, lines: Iterable[str], *, first_line: int = 1) -> list[list[Translation]]:
        """Translates lines; each is one sentence, or is split into several if the model cannot take it whole.

        A line that shows nothing (empty, white space, control characters) is translated as "" without the model.
        Line ends inside a line are spaces.

        Args:
            lines: the text.
            first_line: the number of the first line, for messages.

        Returns:
            For each line its ``n_best`` translations, best first (fewer where the search found fewer).

        Raises:
            InputError: a line holds a lone surrogate or is far too long, or the model returned NaN.
        """
        parts = [self._encode(line, number) for number, line in enumerate(lines, first_line)]
        found = iter(
            translate_ids(
                self._step_fn,
                self._search,
                [ids for line in parts for ids in line],
                batch_tokens=self._batch_tokens,
                workers=self._threads,
            )
        )
        return [self._line(line, [next(found) for _ in line]) for line in parts]

    def _encode(self, line: str, number: int) -> list[list[int]]:
        """The source ids, with EOS, of each part of a line; none if the line is blank."""
        text = _LINE_ENDS.sub(" ", line)
        if is_blank(text):
            return []
        limit = self.manifest.max_src_tokens
        try:
            ids = self._src_tokenizer.encode(text)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
        if len(ids) < limit:
            return [[*ids, EOS]]
        if len(ids) > _MAX_PARTS * limit:
            raise InputError(
                f"line {number} has {len(text)} characters, {len(ids)} tokens; expected at most {_MAX_PARTS * limit} "
                f"tokens (the model takes {limit} at once), so put one sentence on each line"
            )
        encode, tag = self._src_tokenizer.encode, self._tag(text)
        parts = split_text(text.removeprefix(tag), lambda part: len(encode(tag + part)) < limit)
        return [[*encode(tag + part), EOS] for part in parts]

    def _tag(self, text: str) -> str:
        """The language tag that a text begins with, if the model knows it: each part must be told the language."""
        tag = re.match(rf"{LANGUAGE_TAG.pattern}\s+", text)
        return tag[0] if tag and len(self._src_tokenizer.encode(tag[0])) == 1 else ""

    def _line(self, sources: list[list[int]], found: list[list[Hypothesis]]) -> list[Translation]:
        if not sources:
            return [Translation("", 0.0, 0.0, False, (), (), None)]
        # The n-th best of a split line is made of the n-th best of its parts.
        return [self._translation(sources, ranked) for ranked in zip(*found, strict=False)]

    def _translation(self, sources: list[list[int]], hypotheses: Sequence[Hypothesis]) -> Translation:
        texts = (self._tgt_tokenizer.decode(hypothesis.tokens) for hypothesis in hypotheses)
        written = [[*h.tokens] if h.truncated else [*h.tokens, EOS] for h in hypotheses]
        log_prob = sum(hypothesis.log_prob for hypothesis in hypotheses)
        return Translation(
            # What comes out is one line, for every tool that may read it.
            text=" ".join(" ".join(texts).splitlines()),
            score=self._search.options.score(log_prob, sum(map(len, written))),
            log_prob=log_prob,
            truncated=any(hypothesis.truncated for hypothesis in hypotheses),
            src_pieces=tuple(piece for ids in sources for piece in self._src_tokenizer.pieces(ids)),
            tgt_pieces=tuple(piece for ids in written for piece in self._tgt_tokenizer.pieces(ids)),
            alignments=_block_diagonal(
                [
                    h.alignments[np.ix_(self._tgt_tokenizer.text_order(tgt), self._src_tokenizer.text_order(src))]
                    for src, tgt, h in zip(sources, written, hypotheses, strict=True)
                    if h.alignments is not None
                ]
            ),
        )


def _tokenizer(bundle: Bundle, name: str, vocab_size: int, *, reverse: bool) -> SentencePieceTokenizer:
    try:
        tokenizer = SentencePieceTokenizer(bundle.files[name], reverse=reverse)
    except BundleError as error:
        raise BundleError(f"bundle {bundle.path}: {name}: {error}") from error
    if tokenizer.vocab_size != vocab_size:
        raise BundleError(
            f"bundle {bundle.path}: {name} has {tokenizer.vocab_size} entries, but manifest.json says {vocab_size}; "
            "export the bundle again"
        )
    return tokenizer


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
