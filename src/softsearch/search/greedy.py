"""Greedy search: the most probable token at each step, and the loop that it shares with sampling."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsearch.search.blocks import in_blocks
from softsearch.search.constraints import Constraints, no_token_left
from softsearch.search.history import History
from softsearch.search.interface import Candidates, Hypothesis, PrefixStrategy, Sentences, StepFunction
from softsearch.search.options import OutputOptions, SearchOptions
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
        options = SearchOptions(beam=1, **vars(self))
        is_free = src and Constraints(self, src, prefixes, step_fn.vocab_size).none
        if is_free and (lists := in_blocks(step_fn, src, options)) is not None:
            return lists
        return write(step_fn, src, self, most_probable, prefixes=prefixes)


def most_probable(candidates: Candidates, _: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best candidate of each row, a `Chooser`."""
    return np.asarray(candidates.log_probs.argmax(axis=1))


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

    ``choose`` gets the candidates of all rows (-inf where forbidden) and the indices of the live rows, those of a
    source side by side, and returns the index of each row's next candidate, ``[rows]``. It needs ``k`` candidates that
    are not forbidden. Scores are mean log probabilities per token. The translations of a source are in the order in
    which they ended.

    Raises:
        InputError: see PrefixStrategy.
    """
    if not src:
        return []
    state = step_fn.start(src)
    if copies > 1:
        # Not select: as a separate sentence each copy shares no slots with others and is dropped when it ends.
        state = step_fn.keep(state, np.repeat(np.arange(len(src)), copies))
    sources, given = ([ids for ids in side for _ in range(copies)] for side in (src, prefixes or ()))
    constraints = Constraints(options, sources, given or None, step_fn.vocab_size)
    history = History([len(ids) + 1 for ids in sources], alignments=options.alignments)
    results: list[list[Hypothesis]] = [[] for _ in src]
    live = np.arange(len(sources))
    log_probs, tokens = np.zeros(len(live)), np.full(len(live), BOS, dtype=np.int64)
    for length in itertools.count():  # tokens before the step
        candidates, state = step_fn.step(tokens, state, constraints.width(k, live, length))
        candidates = constraints.apply(candidates, live, length)
        choices = choose(candidates, live)[:, None]
        tokens = np.take_along_axis(candidates.tokens, choices, axis=1)[:, 0]
        gained = np.take_along_axis(candidates.log_probs, choices, axis=1)[:, 0]
        if not np.isfinite(gained).all():
            raise no_token_left()
        log_probs = log_probs + gained
        parents = np.zeros((len(live), 1), dtype=np.int64)
        history.add_alignments(live, candidates.alignments)
        history.add_choices(live, parents, tokens[:, None])
        done = (tokens == EOS) | (length + 1 >= constraints.limits[live])
        for index in np.flatnonzero(done):
            ended, log_prob = bool(tokens[index] == EOS), float(log_probs[index])
            written, alignments = history.trace(int(live[index]), length + 1, 0, ended=ended)
            hypothesis = Hypothesis(written, log_prob, log_prob / (length + 1), alignments, not ended)
            results[live[index] // copies].append(hypothesis)
        going = np.flatnonzero(~done)
        if not going.size:
            break
        if going.size < live.size:
            state = step_fn.keep(state, going)
        constraints.advance(going, parents[going], tokens[going, None])
        live, log_probs, tokens = live[going], log_probs[going], tokens[going]
    return results
