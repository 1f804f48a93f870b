"""Forced decoding: the log probability that a model gives to translations that are known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.batching import plan_batches
from softsearch.search.distribution import full_log_probs
from softsearch.search.interface import State, StepFunction
from softsearch.text.vocabulary import BOS, EOS

_FIRST_K = 64  # candidates fetched of every row; most tokens are among them, and sorting all takes ten times as long


class PairScore(NamedTuple):
    """What a model thinks of one translation."""

    log_prob: float  # natural log of p(tgt, EOS | src)
    token_log_probs: tuple[float, ...]  # of each token of tgt, then of EOS; they sum to log_prob


def score_pairs(
    step_fn: StepFunction, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]], *, batch_tokens: int
) -> list[PairScore]:
    """Scores translations of any number and length.

    Args:
        step_fn: the model.
        src: source token ids with EOS.
        tgt: the translation of each, token ids without BOS and EOS as in ``Hypothesis.tokens``; may be empty.
        batch_tokens: the most tokens of a batch on either side, padding included; a longer pair goes alone.

    Returns:
        One score for each pair, in order; which pairs share a batch makes no difference to them.

    Raises:
        InputError: there are more sources than translations or fewer, a source has no tokens, a token is outside the
            vocabulary, or the model returned NaN.
    """
    _check(step_fn, src, tgt)
    scores: list[PairScore] = [PairScore(0.0, ())] * len(src)
    lengths = [max(len(ids), len(tokens) + 1) for ids, tokens in zip(src, tgt, strict=True)]
    for batch in plan_batches(lengths, batch_tokens):
        found = _score_batch(step_fn, [src[i] for i in batch], [tgt[i] for i in batch])
        for index, row in zip(batch, found, strict=True):
            token_log_probs = tuple(row[: len(tgt[index]) + 1].tolist())
            scores[index] = PairScore(float(sum(token_log_probs)), token_log_probs)
    return scores


def _check(step_fn: StepFunction, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> None:
    if len(src) != len(tgt):
        raise InputError(f"{len(src)} sources and {len(tgt)} translations to score; expected as many of each")
    for index, (ids, tokens) in enumerate(zip(src, tgt, strict=True)):
        if not len(ids):
            raise InputError(f"source {index} has no tokens; expected at least EOS")
        outside = [token for token in tokens if not 0 <= token < step_fn.vocab_size]
        if outside:
            raise InputError(
                f"translation {index} has the token {outside[0]}, expected ids below {step_fn.vocab_size}; "
                "encode it with the model's own tokenizer"
            )


def _score_batch(
    step_fn: StepFunction, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """The log probabilities of the tokens of ``tgt`` and of EOS, ``[sentences, longest + 1]``, 0 after EOS."""
    ends = np.array([len(tokens) for tokens in tgt])  # where EOS stands
    targets = np.full((len(tgt), ends.max() + 1), EOS, dtype=np.int64)
    for row, tokens in zip(targets, tgt, strict=True):
        row[: len(tokens)] = tokens
    scores = np.zeros(targets.shape)
    live = np.arange(len(tgt))
    read = np.full(len(tgt), BOS, dtype=np.int64)
    state = step_fn.start(src)
    for place in range(targets.shape[1]):
        wanted = targets[live, place]
        scores[live, place], state = _step(step_fn, read, state, wanted)
        if np.isnan(scores[live, place]).any():
            raise InputError(
                f"the model's log probabilities at target position {place} are NaN, expected numbers: the model's "
                "weights are broken; use another checkpoint"
            )
        going = np.flatnonzero(ends[live] > place)
        if 0 < going.size < live.size:
            state = step_fn.keep(state, going)
        live, read = live[going], wanted[going]
    return scores


def _step(
    step_fn: StepFunction, tokens: NDArray[np.int64], state: State, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.float32], State]:
    """Reads one token of each sentence; returns the log probabilities of the ``wanted`` next ones and the state."""
    candidates, after = step_fn.step(tokens, state, min(_FIRST_K, step_fn.vocab_size))
    is_wanted = candidates.tokens == wanted[:, None]  # [sentences, k]
    log_probs = np.take_along_axis(candidates.log_probs, is_wanted.argmax(axis=1)[:, None], axis=1)[:, 0]
    missing = np.flatnonzero(~is_wanted.any(axis=1))
    if missing.size:
        everything, _, _ = full_log_probs(step_fn, tokens[missing], step_fn.keep(state, missing))
        log_probs[missing] = everything[np.arange(missing.size), wanted[missing]]
    return log_probs, after
