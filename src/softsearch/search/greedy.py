"""Greedy search: the most probable token at each step; and the loop that it shares with sampling."""

import itertools
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

    There is one hypothesis per sentence; its score is the mean log probability per token.
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
    """Writes ``copies`` independent translations of each source, token by token.

    ``choose`` gets the candidates of all rows (-inf where forbidden) and the indices of the live sentences, and returns
    which candidate comes next in each row, ``[rows]``; it needs ``k`` candidates that are not forbidden. Scores are
    mean log probabilities per token. The translations of a source come in the order in which they ended.

    Raises:
        InputError: see PrefixStrategy.
    """
    if not src:
        return []
    constraints = Constraints(options, src, prefixes, step_fn.vocab_size, rows=copies)
    history = History([len(ids) + 1 for ids in src], alignments=options.alignments)
    results: list[list[Hypothesis]] = [[] for _ in src]
    live = np.arange(len(src))
    log_probs = np.zeros((len(src), copies))  # [live sentences, copies]
    unfinished = np.ones((len(src), copies), dtype=bool)
    tokens = np.full((len(src), copies), BOS, dtype=np.int64)
    state = step_fn.start(src)
    if copies > 1:
        state = step_fn.select(state, np.repeat(live, copies))
    for length in itertools.count():  # before the step
        candidates, state = step_fn.step(tokens.reshape(-1), state, constraints.width(k, live, length))
        candidates = constraints.apply(candidates, live, length)
        choices = choose(candidates, live)[:, None]
        tokens = np.take_along_axis(candidates.tokens, choices, axis=1).reshape(unfinished.shape)
        gained = np.take_along_axis(candidates.log_probs, choices, axis=1).reshape(unfinished.shape)
        if not np.isfinite(gained[unfinished]).all():
            raise no_token_left()
        log_probs = log_probs + np.where(unfinished, gained, 0.0)
        parents = np.broadcast_to(np.arange(copies), tokens.shape)
        history.add_alignments(live, candidates.alignments)
        history.add_choices(live, parents, tokens)
        done = unfinished & ((tokens == EOS) | (length + 1 >= constraints.limits[live])[:, None])
        for index, row in zip(*np.nonzero(done), strict=True):
            sentence, log_prob = int(live[index]), float(log_probs[index, row])
            ended = bool(tokens[index, row] == EOS)
            written, alignments = history.trace(sentence, length + 1, int(row), ended=ended)
            results[sentence].append(Hypothesis(written, log_prob, log_prob / (length + 1), alignments, not ended))
        unfinished &= ~done
        going = np.flatnonzero(unfinished.any(axis=1))
        if not going.size:
            break
        if going.size < live.size:
            state = step_fn.keep(state, going)
        constraints.advance(going, parents[going], tokens[going])
        live, log_probs, unfinished, tokens = live[going], log_probs[going], unfinished[going], tokens[going]
    return results
