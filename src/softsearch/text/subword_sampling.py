"""Subword sampling: BPE-dropout and subword regularisation over the pieces of a SentencePiece model.

SentencePiece's own sampling is not reproducible: 0.2.3 mixes its seed with a number of the process, 0.2.0 and 0.2.1
ignore a seed in a thread that has sampled before.
"""

import math
import random
import re
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from softsearch.text.tokenizer import Kind, SentencePieceTokenizer
from softsearch.text.vocabulary import UNK, is_tag

_SPACE = "\u2581"
_WORD = re.compile(f"{_SPACE}[^{_SPACE}]*|[^{_SPACE}]+")  # pieces never cross the space before a word
_WORD_AND_SPACE = re.compile(f"[^{_SPACE}]*{_SPACE}|[^{_SPACE}]+")  # or after it
_BYTE = re.compile("<0x[0-9A-F]{2}>")  # pieces in models with byte_fallback
_CACHED_WORDS = 1 << 16


class SubwordSampler:
    """Draws other segmentations of tokenized text.

    BPE: at every step each possible merge is dropped with probability ``alpha``, and the best of the others is made,
    until none is left (Provilkov et al. 2020, arXiv:1910.13267, algorithm 1). Unigram: a segmentation x is drawn with a
    probability proportional to P(x)^alpha (Kudo 2018, arXiv:1804.10959, section 3.3). So a larger ``alpha`` varies the
    segmentation more in BPE and less in unigram. Language tags stay whole. Text keeps its segmentation if it contains
    unknown characters, which ids cannot name, or single-byte pieces, or if a single character is not a piece.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer, kind: Kind, alpha: float) -> None:
        self.tokenizer, self.kind, self.alpha = tokenizer, kind, alpha
        vocabulary = tokenizer.vocabulary()
        self._ids = {piece: token for piece, (token, _) in vocabulary.items()}
        self._scores = {piece: score for piece, (_, score) in vocabulary.items()}
        self._opaque = {UNK, *(token for piece, token in self._ids.items() if _BYTE.fullmatch(piece))}
        self._longest = max(map(len, self._scores))
        begins = any(piece.startswith(_SPACE) and not is_tag(piece[1:]) for piece in self._scores if len(piece) > 1)
        self._word = _WORD if begins else _WORD_AND_SPACE
        self._draw = self._with_dropout if kind == "bpe" else self._from_lattice
        self._lattice = lru_cache(_CACHED_WORDS)(self._new_lattice)

    def __call__(self, ids: Sequence[int], rng: random.Random) -> list[int]:
        """Returns the ids of the same text in a segmentation drawn with ``rng``."""
        if not self._opaque.isdisjoint(ids):
            return list(ids)
        pieces: list[str] = []
        for word in self._word.findall("".join(self.tokenizer.pieces(ids))):
            tag = word in self._ids and is_tag(word[1:])
            pieces.extend([word] if tag else self._draw(word, rng))
        drawn = [self._ids.get(piece, UNK) for piece in pieces]
        if UNK in drawn:
            return list(ids)
        return drawn[::-1] if self.tokenizer.reverse else drawn

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments, for worker processes."""
        return type(self), (self.tokenizer, self.kind, self.alpha)

    def _with_dropout(self, word: str, rng: random.Random) -> list[str]:
        symbols = list(word)
        while True:
            best, at = -math.inf, -1
            for index in range(len(symbols) - 1):
                score = self._scores.get(symbols[index] + symbols[index + 1], -math.inf)
                if score > best and rng.random() >= self.alpha:
                    best, at = score, index
            if at < 0:
                return symbols
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]

    def _from_lattice(self, word: str, rng: random.Random) -> list[str]:
        """Samples by forward filtering, cached by word, and backward sampling (Kudo 2018, section 3.3)."""
        lattice = self._lattice(word)
        pieces, end = [], len(word)
        while end:
            starts, cumulative = lattice[end]
            start = starts[bisect(cumulative, rng.random() * cumulative[-1], hi=len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _new_lattice(self, word: str) -> list[tuple[list[int], list[float]]]:
        """Returns for each end the possible starts of the piece before it, and their cumulative weights."""
        totals = [0.0]  # log of the sum over all segmentations of word[:end]
        lattice: list[tuple[list[int], list[float]]] = [([], [])]
        for end in range(1, len(word) + 1):
            starts = [
                start
                for start in range(max(0, end - self._longest), end)
                if word[start:end] in self._scores and totals[start] > -math.inf
            ]
            logs = [totals[start] + self.alpha * self._scores[word[start:end]] for start in starts]
            top = max(logs, default=-math.inf)
            weights = list(accumulate(math.exp(log - top) for log in logs))
            totals.append(top + math.log(weights[-1]) if weights else top)
            lattice.append((starts, weights))
        return lattice
