"""Greedy search: the most probable token at each step; and the loop that it shares with sampling."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsearch.search.constraints import Constraints, no_token_left
from softsearch.search.history import History
from softsearch.search.interface import Candidates, Hypothesis, PrefixStrategy, Sentences, StepFunction
from softsearch.search.options import OutputOptions
from softsearch.text.vocabulary import BOS, EOS

Chooser = Callable[[Candidates, NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Greedy(OutputOptions, PrefixStrategy):
    """Takes the best token of each row until EOS or the length limit, as beam search with ``beam=1`` does.

    There is one hypothesis per sentence; its score is the mean log probability of a token.
    """

    def __call__(
        self, step_fn: StepFunction, src: Sentences, *, prefixes: Sentences | None = None
    ) -> list[list[Hypothesis]]:
        """See PrefixStrategy."""
        return write(step_fn, src, self, lambda candidates, _: candidates.log_probs.argmax(axis=1), prefixes=prefixes)


def write(
    step_fn: StepFunction,
    src: Sentences,
    options: OutputOptions,
    choose: Chooser,
    *,
    prefixes: Sentences | None,
    k: int = 1,
    copies: int = 1,
) -> list[list[Hypothesis]]:
    """Writes ``copies`` translations of each source that do not compete, each token by token to its own end.

    ``choose`` gets the candidates of all rows (-inf where forbidden) and the indices of the live sentences, and returns
    which candidate comes next in each row, ``[rows]``; it needs ``k`` candidates, besides forbidden ones. Scores are
    mean log probabilities of a token. Each source's translations come in the order in which they ended.

    Raises:
        InputError: see PrefixStrategy.
    """
    if not src:
        return []
    batch = _Batch(src, options, Constraints(options, src, prefixes, step_fn.vocab_size, rows=copies), copies)
    tokens = np.full(len(src) * copies, BOS, dtype=np.int64)
    state = step_fn.start(src)
    if copies > 1:
        state = step_fn.select(state, np.repeat(np.arange(len(src)), copies))
    while True:
        stepped = batch.live.size
        candidates, state = step_fn.step(tokens, state, batch.constraints.width(k, batch.live, batch.length))
        going, tokens = batch.advance(candidates, choose)
        if not going.size:
            return batch.results
        if going.size < stepped:
            state = step_fn.keep(state, going)


class _Batch:
    """The translations of one batch while they are being written."""

    def __init__(self, src: Sentences, options: OutputOptions, constraints: Constraints, copies: int) -> None:
        self.constraints = constraints
        self.history = History([len(ids) + 1 for ids in src], alignments=options.alignments)
        self.results: list[list[Hypothesis]] = [[] for _ in src]
        self.length = 0
        self.live = np.arange(len(src))
        self.log_probs = np.zeros((len(src), copies))  # [live sentences, copies]
        self.unfinished = np.ones((len(src), copies), dtype=bool)

    def advance(self, candidates: Candidates, choose: Chooser) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Takes one step's candidates.

        Returns the sentences that go on, as indices into those that were stepped, and the next token of their rows.
        """
        candidates = self.constraints.apply(candidates, self.live, self.length)
        choices = choose(candidates, self.live)[:, None]
        tokens = np.take_along_axis(candidates.tokens, choices, axis=1).reshape(self.unfinished.shape)
        gained = np.take_along_axis(candidates.log_probs, choices, axis=1).reshape(self.unfinished.shape)
        if not np.isfinite(gained[self.unfinished]).all():
            raise no_token_left()
        self.length += 1
        self.log_probs = self.log_probs + np.where(self.unfinished, gained, 0.0)
        parents = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        self.history.add_alignments(self.live, candidates.alignments)
        self.history.add_choices(self.live, parents, tokens)
        ended = tokens == EOS
        done = self.unfinished & (ended | (self.length >= self.constraints.limits[self.live])[:, None])
        for index, row in zip(*np.nonzero(done), strict=True):
            sentence, log_prob = int(self.live[index]), float(self.log_probs[index, row])
            truncated = not ended[index, row]
            written, alignments = self.history.trace(sentence, self.length, int(row))
            own = written if truncated else written[:-1]
            matrix = np.stack(alignments) if alignments else None
            self.results[sentence].append(Hypothesis(own, log_prob, log_prob / self.length, matrix, truncated))
        unfinished = self.unfinished & ~done
        going = np.flatnonzero(unfinished.any(axis=1))
        self.constraints.advance(going, parents[going], tokens[going])
        self.live, self.log_probs, self.unfinished = self.live[going], self.log_probs[going], unfinished[going]
        return going, tokens[going].reshape(-1)
