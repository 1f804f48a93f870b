"""Forced decoding: the log probabilities and the alignments of given translations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.batching import plan_batches
from softsearch.search.interface import Sentences, State, StepFunction, full_log_probs
from softsearch.text.vocabulary import BOS, EOS

_FIRST_K = 64  # candidates fetched for every row; most tokens are among them, and sorting all is ten times as slow


class PairScore(NamedTuple):
    """A model's log probabilities of one translation."""

    log_prob: float  # natural log of p(tgt, EOS | src)
    token_log_probs: tuple[float, ...]  # of each token of tgt, then of EOS; they sum to log_prob


def score_pairs(step_fn: StepFunction, src: Sentences, tgt: Sentences, *, batch_tokens: int) -> list[PairScore]:
    """Scores translations of any number and length, given as token ids.

    A batch has at most ``batch_tokens`` tokens on either side, padding included; a longer pair goes alone. Which pairs
    share a batch makes no difference to their scores.

    Raises:
        InputError: there are not as many translations as sources, a token is outside the vocabulary, or the model
            returned NaN.
    """
    if len(src) != len(tgt):
        raise InputError(f"{len(src)} sources and {len(tgt)} translations to score; expected as many of each")
    for index, tokens in enumerate(tgt):
        outside = [token for token in tokens if not 0 <= token < step_fn.vocab_size]
        if outside:
            raise InputError(
                f"translation {index} has the token {outside[0]}, expected ids below {step_fn.vocab_size}; "
                "encode it with the model's own tokenizer"
            )
    scores: list[PairScore] = [PairScore(0.0, ())] * len(src)
    for batch in _batches(src, tgt, batch_tokens):
        rows = _score_batch(step_fn, [src[i] for i in batch], [tgt[i] for i in batch])
        for index, row in zip(batch, rows, strict=True):
            token_log_probs = tuple(row[: len(tgt[index]) + 1].tolist())
            scores[index] = PairScore(float(sum(token_log_probs)), token_log_probs)
    return scores


def _score_batch(step_fn: StepFunction, src: Sentences, tgt: Sentences) -> NDArray[np.float64]:
    """The log probabilities of the tokens of ``tgt`` and of EOS, ``[sentences, longest + 1]``, 0 after EOS."""
    ends, targets = np.array([len(tokens) for tokens in tgt]), _targets(tgt)
    scores = np.zeros(targets.shape)
    live = np.arange(len(tgt))
    read = np.full(len(tgt), BOS, dtype=np.int64)
    state = step_fn.start(src)
    for position in range(targets.shape[1]):
        wanted = targets[live, position]
        scores[live, position], state = _step(step_fn, read, state, wanted)
        if np.isnan(scores[live, position]).any():
            raise InputError(
                f"the model's log probabilities at target position {position} are NaN, expected numbers: the model's "
                "weights are broken; use another checkpoint"
            )
        going = np.flatnonzero(ends[live] > position)
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


def forced_alignments(
    step_fn: StepFunction, src: Sentences, tgt: Sentences, *, batch_tokens: int
) -> list[NDArray[np.float32]] | None:
    """The attention of a model that is made to write given translations; batches as in :func:`score_pairs`.

    Returns for each sentence ``[len(tgt) + 1, src_len]``, the last row EOS's, each row a distribution over the source;
    None if the model has no alignments.
    """
    matrices: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(src)
    for batch in _batches(src, tgt, batch_tokens):
        aligned = _align_batch(step_fn, [src[i] for i in batch], [tgt[i] for i in batch])
        if aligned is None:
            return None
        for index, matrix in zip(batch, aligned, strict=True):
            matrices[index] = matrix
    return matrices


def _align_batch(step_fn: StepFunction, src: Sentences, tgt: Sentences) -> list[NDArray[np.float32]] | None:
    rows, targets = [], _targets(tgt)
    state = step_fn.start(src)
    read = np.full(len(src), BOS, dtype=np.int64)
    for position in range(targets.shape[1]):
        candidates, state = step_fn.step(read, state, 1)
        if candidates.alignments is None:
            return None
        rows.append(candidates.alignments)
        read = targets[:, position]
    together = np.stack(rows, axis=1)  # [sentences, longest target, longest source]
    return [matrix[: len(t) + 1, : len(s) + 1] for matrix, s, t in zip(together, src, tgt, strict=True)]


def _batches(src: Sentences, tgt: Sentences, batch_tokens: int) -> list[list[int]]:
    return plan_batches([max(map(len, pair)) + 1 for pair in zip(src, tgt, strict=True)], batch_tokens)


def _targets(tgt: Sentences) -> NDArray[np.int64]:
    """The tokens to write, ``[sentences, longest + 1]``, filled up with EOS."""
    targets = np.full((len(tgt), max(map(len, tgt)) + 1), EOS, dtype=np.int64)
    for row, tokens in zip(targets, tgt, strict=True):
        row[: len(tokens)] = tokens
    return targets
