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
    constraints = Constraints(options, src, prefixes, step_fn.vocab_size)
    history = History(len(src), [len(ids) for ids in src], alignments=options.alignments)
    results: list[list[Hypothesis]] = [[] for _ in src]
    live = np.arange(len(src))
    log_probs = np.zeros((len(src), copies))  # [live sentences, copies]
    unfinished = np.ones((len(src), copies), dtype=bool)
    tokens = np.full(len(src), BOS, dtype=np.int64)
    state = step_fn.start(src)
    length = 0
    while True:
        candidates, state = step_fn.step(tokens, state, constraints.width(k, live, length))
        check_candidates(candidates, length)
        candidates = constraints.apply(candidates, live, length)
        parents, chosen, gained = _take(candidates, choose(candidates, live, length))
        if not np.isfinite(gained[unfinished]).all():
            raise no_token_left()
        length += 1
        log_probs = log_probs + np.where(unfinished, gained, 0.0)
        history.add_alignments(live, candidates.alignments)
        history.add_choices(live, parents, chosen)
        ended = chosen == EOS
        done = unfinished & (ended | (length >= constraints.limits[live])[:, None])
        for index, row in zip(*np.nonzero(done), strict=True):
            log_prob, truncated = float(log_probs[index, row]), not ended[index, row]
            results[live[index]].append(_read(history, int(live[index]), length, int(row), log_prob, truncated))
        unfinished = unfinished & ~done
        going = np.flatnonzero(unfinished.any(axis=1))
        if not going.size:
            return results
        if going.size < live.size:
            state = step_fn.keep(state, going)
        rows = len(tokens) // live.size
        parents, chosen = parents[going], chosen[going]
        constraints.advance(going, parents, chosen)
        if rows < copies:
            state = step_fn.select(state, (np.arange(going.size)[:, None] * rows + parents).reshape(-1))
        live, log_probs, unfinished, tokens = live[going], log_probs[going], unfinished[going], chosen.reshape(-1)


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


def _read(history: History, sentence: int, length: int, row: int, log_prob: float, truncated: bool) -> Hypothesis:
    tokens, alignments = history.trace(sentence, length, row)
    return Hypothesis(
        tokens=tokens if truncated else tokens[:-1],
        log_prob=log_prob,
        score=log_prob / length,
        alignments=np.stack(alignments) if alignments else None,
        truncated=truncated,
    )
