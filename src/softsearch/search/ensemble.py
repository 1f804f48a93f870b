"""Ensembles of models, with optional shallow fusion of a language model."""

import math
from collections.abc import Callable, Sequence

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
from softsearch.search.options import AVERAGES, Average

_ROWS = 16  # averaged at once: few enough to stay in the processor's cache between passes


class Ensemble(StepFunction):
    """A StepFunction that averages the next token's distributions of several models, in PyTorch, ONNX or mixed.

    There are three kinds of mean; weights are divided by their sum, and equal by default.

    - ``probs``: ``log sum_i w_i p_i``, a mixture.
    - ``unnormalised_log_probs``: ``sum_i w_i log p_i``, which over a translation is a product of experts (Hinton 2002).
      It is a score, not a log probability: it falls as the members disagree.
    - ``log_probs``, the default: the same, normalised at each step. A translation has a probability, as with one model,
      and therefore a loss and a perplexity; disagreement alone costs nothing.

    Shallow fusion (Gulcehre et al. 2015, arXiv:1503.03535, section 4.1) then adds ``language_model_weight * log p_lm``
    of a model that reads no source (``model=rnnlm``); the result is then always a score.

    The members share the target vocabulary and read the same source ids (otherwise wrap them in
    ``WithMappedIds``). Models of weight 0 are not run, and a single member is passed through. Alignments are the
    weighted mean over the members that have them.

    Raises:
        ConfigError: there are no members, their vocabularies differ, or a weight is wrong.
    """

    def __init__(
        self,
        members: Sequence[StepFunction],
        weights: Sequence[float] | None = None,
        average: Average = "log_probs",
        language_model: StepFunction | None = None,
        language_model_weight: float = 0.0,
    ) -> None:
        if not members:
            raise ConfigError(
                "an ensemble of no models, expected at least one; name some with ckpt=[...] or bundle=[...]"
            )
        checked = np.ones(len(members)) if weights is None else np.asarray(weights, dtype=np.float64)
        if len(checked) != len(members) or not (np.isfinite(checked) & (checked >= 0)).all() or not checked.any():
            raise ConfigError(
                f"the weights of an ensemble of {len(members)} models are {checked.tolist()}, expected {len(members)} "
                "numbers of at least 0 that are not all 0"
            )
        if average not in AVERAGES:
            raise ConfigError(f"the average of an ensemble is {average!r}, expected one of {', '.join(AVERAGES)}")
        if not 0 <= language_model_weight < np.inf:
            raise ConfigError(
                f"the language model's weight is {language_model_weight}, expected a number of at least 0"
            )
        self.vocab_size = members[0].vocab_size
        language = [] if language_model is None else [language_model]
        for model in (*members, *language):
            if model.vocab_size != self.vocab_size:
                raise ConfigError(
                    f"an ensemble of models with {self.vocab_size} and {model.vocab_size} target tokens, expected one "
                    "target vocabulary; train them on the same data with the same tokenizer"
                )
        used = np.flatnonzero(checked)
        self.members = [members[int(i)] for i in used]
        self.weights = checked[used] / checked.sum()
        self.has_attention = any(member.has_attention for member in self.members)
        self.average = average
        self.language_model_weight = language_model_weight if language else 0.0
        self.models = [*self.members, *(language if language_model_weight else [])]

    @property
    def is_distribution(self) -> bool:
        """Tells whether the probabilities of the next token sum to 1, so that a translation has a probability."""
        normalised = self.average != "unnormalised_log_probs" or len(self.members) == 1
        return normalised and not self.language_model_weight

    def start(self, src: Sentences) -> tuple[State, ...]:
        nothing: list[list[int]] = [[] for _ in src]  # for the language model
        return tuple(m.start(src if i < len(self.members) else nothing) for i, m in enumerate(self.models))

    def step(self, tokens: NDArray[np.int64], state: tuple[State, ...], k: int) -> tuple[Candidates, tuple[State, ...]]:
        """Averages the members' distributions; ties are ordered by id."""
        if len(self.models) == 1:
            candidates, after = self.members[0].step(tokens, state[0], k)
            return candidates, (after,)
        steps = [full_log_probs(model, tokens, own) for model, own in zip(self.models, state, strict=True)]
        all_log_probs, all_alignments, states = zip(*steps, strict=True)
        alignments = _mean_alignments(all_alignments[: len(self.members)], self.weights)
        parts = (
            self._best([log_probs[begin : begin + _ROWS] for log_probs in all_log_probs], k)
            for begin in range(0, len(tokens), _ROWS)
        )
        log_probs, ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Candidates(log_probs, ids, alignments), states

    def _best(self, all_log_probs: list[NDArray[np.float32]], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The candidates of a few rows, from every model's log probabilities ``[rows, vocab]``."""
        count = len(self.members)
        log_probs = mean_log_probs(all_log_probs[:count], self.weights, self.average)
        if self.language_model_weight:
            log_probs += self.language_model_weight * all_log_probs[count]
        if k == self.vocab_size:
            return whole_vocabulary(log_probs, None)[:2]
        return best_candidates(log_probs, np.arange(self.vocab_size), None, k)[:2]

    def select(self, state: tuple[State, ...], rows: NDArray[np.int64]) -> tuple[State, ...]:
        return tuple(model.select(own, rows) for model, own in zip(self.models, state, strict=True))

    def keep(self, state: tuple[State, ...], sentences: NDArray[np.int64]) -> tuple[State, ...]:
        return tuple(model.keep(own, sentences) for model, own in zip(self.models, state, strict=True))


class WithMappedIds(StepFunctionWrapper):
    """A model whose source vocabulary, or order of source ids, differs from the caller's.

    ``map_ids`` maps the caller's source ids to the model's. It returns no alignments: they would refer to other tokens.
    """

    def __init__(self, step_fn: StepFunction, map_ids: Callable[[Sequence[int]], list[int]]) -> None:
        super().__init__(step_fn)
        self.map_ids, self.has_attention = map_ids, False

    def start(self, src: Sentences) -> State:
        return self.step_fn.start([self.map_ids(ids) for ids in src])

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        candidates, state = self.step_fn.step(tokens, state, k)
        return candidates._replace(alignments=None), state


def mean_log_probs(
    log_probs: Sequence[NDArray[np.float32]], weights: NDArray[np.float64], average: Average
) -> NDArray[np.float32]:
    """The weighted mean of distributions ``[rows, vocab]``, see ``Ensemble``; all -inf if no token is possible.

    ``weights`` are positive and sum to 1. The arithmetic is in float32, like the members': it adds an error of about
    1e-7 to a log probability, less than the members' own sums, and takes half the time of float64.
    """
    shares = weights.tolist()  # plain numbers keep float32 arrays in float32
    if average == "probs":
        parts = [part + math.log(share) for part, share in zip(log_probs, shares, strict=True)]
        return log_sum_exp(np.stack(parts), axis=0)[0]
    total = log_probs[0] * shares[0]
    for part, share in zip(log_probs[1:], shares[1:], strict=True):
        total += share * part
    if average == "unnormalised_log_probs":
        return total
    norm = log_sum_exp(total, axis=1)
    total -= np.where(np.isneginf(norm), np.float32(0), norm)
    return total


def _mean_alignments(
    alignments: Sequence[NDArray[np.float32] | None], weights: NDArray[np.float64]
) -> NDArray[np.float32] | None:
    have = [(part, weight) for part, weight in zip(alignments, weights, strict=True) if part is not None]
    if not have:
        return None
    mean = sum(weight * part for part, weight in have) / sum(weight for _, weight in have)
    return np.asarray(mean, dtype=np.float32)
