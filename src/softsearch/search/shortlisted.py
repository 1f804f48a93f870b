"""Models with words that may not come: a vocabulary shortlist over any model, and bans under any search."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.search.distribution import full_log_probs
from softsearch.search.interface import Candidates, State, StepFunction
from softsearch.search.shortlist import Allowed, Shortlist


class ShortlistedState(NamedTuple):
    """Where the rows stand in the model, and the words that may come."""

    model: State
    words: Allowed


class Shortlisted:
    """A StepFunction in which a sentence may use the words of its shortlist only, and probabilities count among them.

    It gives what a model that leaves the other words out of its softmax gives, and saves no time: the model still
    computes them all.

    Args:
        step_fn: the model.
        shortlist: the words.
    """

    def __init__(self, step_fn: StepFunction, shortlist: Shortlist) -> None:
        self.step_fn, self.shortlist = step_fn, shortlist
        self.vocab_size, self.has_attention = step_fn.vocab_size, step_fn.has_attention

    def start(self, src: Sequence[Sequence[int]]) -> ShortlistedState:
        """See StepFunction."""
        return ShortlistedState(self.step_fn.start(src), self.shortlist(src))

    def step(self, tokens: NDArray[np.int64], state: ShortlistedState, k: int) -> tuple[Candidates, ShortlistedState]:
        """One step; no more candidates than the sentences have words together."""
        words = state.words
        everything, alignments, after = full_log_probs(self.step_fn, tokens, state.model)
        mask = np.repeat(words.mask, len(tokens) // len(words.mask), axis=0)  # [rows, words]
        log_probs = np.where(mask, everything[:, words.tokens].astype(np.float64), -np.inf)
        log_probs -= np.logaddexp.reduce(log_probs, axis=1, keepdims=True)
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
        top = np.take_along_axis(log_probs, best, axis=1).astype(np.float32)
        return Candidates(top, words.tokens[best], alignments), ShortlistedState(after, words)

    def select(self, state: ShortlistedState, rows: NDArray[np.int64]) -> ShortlistedState:
        """See StepFunction."""
        return state._replace(model=self.step_fn.select(state.model, rows))

    def keep(self, state: ShortlistedState, sentences: NDArray[np.int64]) -> ShortlistedState:
        """See StepFunction."""
        words = state.words._replace(mask=state.words.mask[sentences])
        return ShortlistedState(self.step_fn.keep(state.model, sentences), words)


class Banned:
    """A StepFunction in which some tokens never come, whatever the search; the others keep their probabilities.

    What a search with the option ``banned`` finds, exact and reranking ones included, which lack that option.

    Args:
        step_fn: the model.
        tokens: ids of the tokens.
    """

    def __init__(self, step_fn: StepFunction, tokens: Sequence[int]) -> None:
        self.step_fn, self.tokens = step_fn, tokens
        self.vocab_size, self.has_attention = step_fn.vocab_size, step_fn.has_attention

    def start(self, src: Sequence[Sequence[int]]) -> State:
        """See StepFunction."""
        return self.step_fn.start(src)

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """See StepFunction."""
        found, after = self.step_fn.step(tokens, state, min(k + len(self.tokens), self.vocab_size))
        log_probs = np.where(np.isin(found.tokens, self.tokens), np.float32(-np.inf), found.log_probs)
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
        top, ids = (np.take_along_axis(part, best, axis=1) for part in (log_probs, found.tokens))
        return Candidates(top, ids, found.alignments), after

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """See StepFunction."""
        return self.step_fn.select(state, rows)

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        """See StepFunction."""
        return self.step_fn.keep(state, sentences)
