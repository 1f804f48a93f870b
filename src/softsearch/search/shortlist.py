"""Vocabulary shortlists: the few target words that each sentence may use, and a softmax over them for any model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.interface import (
    Candidates,
    Sentences,
    State,
    StepFunction,
    StepFunctionWrapper,
    best_candidates,
    full_log_probs,
    log_sum_exp,
    whole_vocabulary,
)
from softsearch.text.vocabulary import EOS


class AllowedTokens(NamedTuple):
    """The target words of a batch and which of them each sentence may use."""

    tokens: NDArray[np.int64]  # [words] ids, rising
    mask: NDArray[np.bool_]  # [sentences, words]


def spread(log_probs: NDArray[np.float32], tokens: NDArray[np.int64], vocab_size: int) -> NDArray[np.float32]:
    """Log probabilities ``[rows, words]`` of some tokens ``[words]``, as ``[rows, vocab_size]`` with -inf elsewhere."""
    whole = np.full((len(log_probs), vocab_size), -np.inf, dtype=np.float32)
    whole[:, tokens] = log_probs
    return whole


class Shortlist:
    """The candidate lists of Jean et al. 2015 (arXiv:1412.2007, section 3.3).

    A sentence may use the most frequent target words (``frequent [K]`` and EOS) and the likely translations of each of
    its source words (``translations [src_vocab, K']``, padded with -1), regardless of its batch.

    Raises:
        ConfigError: there are no frequent words.
    """

    def __init__(self, frequent: NDArray[np.integer], translations: NDArray[np.integer]) -> None:
        if not frequent.size:
            raise ConfigError("a shortlist of 0 frequent words, expected at least 1; change shortlist.frequent")
        self.frequent = np.union1d(frequent, [EOS])
        self.translations = translations

    def __call__(self, src: Sentences) -> AllowedTokens:
        """The words for sources given as token ids."""
        own = [np.union1d(self.frequent, self.translations[np.asarray(ids, dtype=np.int64)]) for ids in src]
        own = [ids[ids >= 0] for ids in own]
        tokens = np.unique(np.concatenate(own)).astype(np.int64)
        return AllowedTokens(tokens, np.stack([np.isin(tokens, ids, assume_unique=True) for ids in own]))


ShortlistState = tuple[State, AllowedTokens]  # of the model, and the words of its sentences


class ShortlistStep(StepFunctionWrapper):
    """A StepFunction over the words of each sentence's shortlist, whose probabilities sum to 1.

    The result is that of a model whose softmax leaves the other words out, but no time is saved, because the model
    still computes them all. Bundles with a shortlist and PyTorch models compute only the listed words.
    """

    def __init__(self, step_fn: StepFunction, shortlist: Shortlist) -> None:
        super().__init__(step_fn)
        self.shortlist = shortlist

    def start(self, src: Sentences) -> ShortlistState:
        return self.step_fn.start(src), self.shortlist(src)

    def step(self, tokens: NDArray[np.int64], state: ShortlistState, k: int) -> tuple[Candidates, ShortlistState]:
        """Reads one token per row; returns at most as many candidates as the shortlists have words in total."""
        before, words = state
        all_log_probs, alignments, after = full_log_probs(self.step_fn, tokens, before)
        mask = np.repeat(words.mask, len(tokens) // len(words.mask), axis=0)  # [rows, words]
        log_probs = np.where(mask, all_log_probs[:, words.tokens], np.float32(-np.inf))
        log_probs -= log_sum_exp(log_probs, axis=1)
        if k == self.vocab_size:
            return whole_vocabulary(spread(log_probs, words.tokens, k), alignments), (after, words)
        return best_candidates(log_probs, words.tokens, alignments, k), (after, words)

    def select(self, state: ShortlistState, rows: NDArray[np.int64]) -> ShortlistState:
        return self.step_fn.select(state[0], rows), state[1]

    def keep(self, state: ShortlistState, sentences: NDArray[np.int64]) -> ShortlistState:
        before, words = state
        return self.step_fn.keep(before, sentences), words._replace(mask=words.mask[sentences])
