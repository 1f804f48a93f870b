"""Forced decoding: the log probabilities and the alignments of given translations."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.batching import plan_batches
from softsearch.search.interface import Candidates, Sentences, State, StepFunction, full_log_probs
from softsearch.text.vocabulary import BOS, EOS

_FIRST_K = 64  # candidates fetched for every row: they contain most tokens, and sorting all takes ten times as long


class PairScore(NamedTuple):
    """A model's log probabilities of one translation.

    Attributes:
        log_prob: the natural log of p(tgt, EOS | src).
        token_log_probs: log probabilities of the target's tokens, then of EOS; they sum to ``log_prob``.
    """

    log_prob: float
    token_log_probs: tuple[float, ...]


def score_pairs(step_fn: StepFunction, src: Sentences, tgt: Sentences, *, batch_tokens: int) -> list[PairScore]:
    """Scores translations of any number and length, given as token ids.

    A batch has at most ``batch_tokens`` tokens on either side, padding included; a longer pair gets its own batch.
    Scores do not depend on the batches.

    Raises:
        InputError: the numbers of sources and translations differ, a token is outside the vocabulary, or the model
            returned NaN.
    """
    if len(src) != len(tgt):
        raise InputError(f"{len(src)} sources and {len(tgt)} translations to score; expected equal numbers")
    for index, tokens in enumerate(tgt):
        outside = [token for token in tokens if not 0 <= token < step_fn.vocab_size]
        if outside:
            raise InputError(
                f"translation {index} has the token {outside[0]}, expected ids below {step_fn.vocab_size}; "
                "encode it with the model's own tokenizer"
            )
    scores: list[list[float]] = [[] for _ in tgt]
    for step in forced_steps(step_fn, src, tgt, batch_tokens, k=min(_FIRST_K, step_fn.vocab_size)):
        log_probs = _log_probs(step_fn, step)
        if not (log_probs < np.inf).all():
            found = "NaN" if np.isnan(log_probs).any() else "infinite"
            raise InputError(
                f"the model's log probabilities at target position {step.position} are {found}, expected numbers: the "
                "model's weights are broken; use another checkpoint"
            )
        for index, log_prob in zip(step.pairs, log_probs.tolist(), strict=True):
            scores[index].append(log_prob)
    return [PairScore(sum(log_probs), tuple(log_probs)) for log_probs in scores]


def forced_alignments(
    step_fn: StepFunction, src: Sentences, tgt: Sentences, *, batch_tokens: int
) -> list[NDArray[np.float32]] | None:
    """The attention of a model that is forced to write given translations; batches as in ``score_pairs``.

    Returns for each sentence ``[len(tgt) + 1, src_len]``, one distribution over the source for each token and for EOS;
    None if the model has no alignments.
    """
    rows: list[list[NDArray[np.float32]]] = [[] for _ in tgt]
    for step in forced_steps(step_fn, src, tgt, batch_tokens, k=1):
        if step.candidates.alignments is None:
            return None
        for index, alignment in zip(step.pairs, step.candidates.alignments, strict=True):
            rows[index].append(alignment[: len(src[index]) + 1])
    return [np.stack(alignments) for alignments in rows]


class ForcedStep(NamedTuple):
    """One step for the unfinished sentences of a batch; axis 0 = these sentences."""

    pairs: NDArray[np.int64]  # indices of the sentences
    position: int  # of the token to be written
    read: NDArray[np.int64]  # the token before it
    state: State  # before reading
    candidates: Candidates
    wanted: NDArray[np.int64]  # the token to be written


def forced_steps(
    step_fn: StepFunction, src: Sentences, tgt: Sentences, batch_tokens: int, *, k: int
) -> Iterator[ForcedStep]:
    """Forces the model to write ``tgt`` and EOS; a finished sentence is not stepped again.

    A source that a batch has several times, as in n-best lists, is encoded once.
    """
    for batch in plan_batches([max(map(len, pair)) + 1 for pair in zip(src, tgt, strict=True)], batch_tokens):
        live, lengths = np.array(batch), np.array([len(tgt[index]) for index in batch])
        sources = [src[index] for index in batch]
        keys = [source if isinstance(source, tuple) else tuple(source) for source in sources]
        once = dict(zip(keys, sources, strict=True))
        state, read = step_fn.start([*once.values()]), np.full(len(batch), BOS, dtype=np.int64)
        if len(once) < len(batch):
            places = {key: place for place, key in enumerate(once)}
            state = step_fn.keep(state, np.array([places[key] for key in keys]))
        for position in range(lengths.max() + 1):
            wanted = np.array([tgt[i][position] if position < len(tgt[i]) else EOS for i in live])
            candidates, after = step_fn.step(read, state, k)
            yield ForcedStep(live, position, read, state, candidates, wanted)
            going = np.flatnonzero(lengths > position)
            state = step_fn.keep(after, going) if 0 < going.size < live.size else after
            live, lengths, read = live[going], lengths[going], wanted[going]


def _log_probs(step_fn: StepFunction, step: ForcedStep) -> NDArray[np.float32]:
    """The log probabilities of the wanted tokens, whether or not they are among the candidates."""
    candidates = step.candidates
    is_wanted = candidates.tokens == step.wanted[:, None]  # [sentences, k]
    log_probs = np.take_along_axis(candidates.log_probs, is_wanted.argmax(axis=1)[:, None], axis=1)[:, 0]
    missing = np.flatnonzero(~is_wanted.any(axis=1))
    if missing.size:
        everything, _, _ = full_log_probs(step_fn, step.read[missing], step_fn.keep(step.state, missing))
        log_probs[missing] = everything[np.arange(missing.size), step.wanted[missing]]
    return log_probs
