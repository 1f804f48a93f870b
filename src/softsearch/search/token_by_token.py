"""Hypotheses that do not compete: each row is written token by token to its own end."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from softsearch.search.constraints import Constraints
from softsearch.search.history import History, check_candidates, no_token_left
from softsearch.search.interface import Candidates, Hypothesis, OutputOptions, StepFunction
from softsearch.text.vocabulary import BOS, EOS

Chooser = Callable[[Candidates, NDArray[np.int64], int], NDArray[np.int64]]


def write(
    step_fn: StepFunction,
    src: Sequence[Sequence[int]],
    options: OutputOptions,
    choose: Chooser,
    *,
    prefixes: Sequence[Sequence[int]] | None,
    k: int,
    copies: int = 1,
) -> list[list[Hypothesis]]:
    """Writes ``copies`` translations of each source; their score is the mean log probability of a token.

    Args:
        step_fn: the model.
        src: token ids with EOS, at least one source.
        options: lengths and constraints.
        choose: takes the candidates of all rows (-inf for what may not come), the numbers of the sentences that are
            still being written and how many tokens they have; returns which candidate comes next in each of their
            copies, ``[live sentences, copies]``. At first there is one row for all copies.
        prefixes: see PrefixStrategy.
        k: candidates that ``choose`` needs, besides those that may not come.
        copies: translations of each source.

    Returns:
        For each source its translations in the order in which they ended.

    Raises:
        InputError: see PrefixStrategy.
    """
    batch = _Batch(src, options, Constraints(options, src, prefixes, step_fn.vocab_size), copies)
    tokens = np.full(len(src), BOS, dtype=np.int64)
    state = step_fn.start(src)
    while True:
        candidates, state = step_fn.step(tokens, state, batch.constraints.width(k, batch.live, batch.length))
        rows, stepped = len(tokens) // batch.live.size, batch.live.size
        going, parents, chosen = batch.advance(candidates, choose)
        if not going.size:
            return batch.results
        if going.size < stepped:
            state = step_fn.keep(state, going)
        if rows < copies:
            state = step_fn.select(state, (np.arange(going.size)[:, None] * rows + parents).reshape(-1))
        tokens = chosen.reshape(-1)


class _Batch:
    """The translations of one batch while they are being written."""

    def __init__(
        self, src: Sequence[Sequence[int]], options: OutputOptions, constraints: Constraints, copies: int
    ) -> None:
        self.constraints = constraints
        self.history = History(len(src), [len(ids) for ids in src], alignments=options.alignments)
        self.results: list[list[Hypothesis]] = [[] for _ in src]
        self.length = 0
        self.live = np.arange(len(src))
        self.log_probs = np.zeros((len(src), copies))  # [live sentences, copies]
        self.unfinished = np.ones((len(src), copies), dtype=bool)

    def advance(
        self, candidates: Candidates, choose: Chooser
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Takes one step's candidates.

        Returns:
            The sentences that go on, as indices into those that were stepped; and for each of their copies the row
            that it continues and what with, ``[going, copies]``.
        """
        check_candidates(candidates, self.length)
        candidates = self.constraints.apply(candidates, self.live, self.length)
        parents, tokens, gained = _take(candidates, choose(candidates, self.live, self.length))
        if not np.isfinite(gained[self.unfinished]).all():
            raise no_token_left()
        self.length += 1
        self.log_probs = self.log_probs + np.where(self.unfinished, gained, 0.0)
        self.history.add_alignments(self.live, candidates.alignments)
        self.history.add_choices(self.live, parents, tokens)
        ended = tokens == EOS
        done = self.unfinished & (ended | (self.length >= self.constraints.limits[self.live])[:, None])
        for index, row in zip(*np.nonzero(done), strict=True):
            found = self._read(int(self.live[index]), int(row), float(self.log_probs[index, row]), ended[index, row])
            self.results[self.live[index]].append(found)
        unfinished = self.unfinished & ~done
        going = np.flatnonzero(unfinished.any(axis=1))
        parents, tokens = parents[going], tokens[going]
        self.constraints.advance(going, parents, tokens)
        self.live, self.log_probs, self.unfinished = self.live[going], self.log_probs[going], unfinished[going]
        return going, parents, tokens

    def _read(self, sentence: int, row: int, log_prob: float, ended: bool) -> Hypothesis:
        tokens, alignments = self.history.trace(sentence, self.length, row)
        return Hypothesis(
            tokens=tokens[:-1] if ended else tokens,
            log_prob=log_prob,
            score=log_prob / self.length,
            alignments=np.stack(alignments) if alignments else None,
            truncated=not ended,
        )


def _take(
    candidates: Candidates, ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """The rows that the copies continue, their next tokens and what they cost, ``[live sentences, copies]``."""
    sentences, copies = ranks.shape
    rows, k = candidates.tokens.shape[0] // sentences, candidates.tokens.shape[1]
    parents = np.broadcast_to(np.arange(copies) % rows, ranks.shape)  # one row for all of them, or one for each
    taken = (np.arange(sentences)[:, None], parents, ranks)
    shape = (sentences, rows, k)
    return parents, candidates.tokens.reshape(shape)[taken], candidates.log_probs.reshape(shape)[taken]
