"""Several models that write one translation together, and a language model that listens in."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.distribution import full_log_probs
from softsearch.search.interface import Candidates, State, StepFunction
from softsearch.text.vocabulary import EOS

Average = Literal["log_probs", "unnormalised_log_probs", "probs"]
AVERAGES: tuple[Average, ...] = ("log_probs", "unnormalised_log_probs", "probs")


class EnsembleState(NamedTuple):
    """Where the rows stand in each model."""

    members: tuple[State, ...]
    language_model: State | None


class Ensemble:
    """A StepFunction that is the mean of others, whatever they are made of.

    There are three means of the next token's distributions. Weights are divided by their sum.

    - ``probs``: ``log sum_i w_i p_i``, a mixture.
    - ``unnormalised_log_probs``: ``sum_i w_i log p_i``. The sum over a translation is ``sum_i w_i log p_i(tgt | src)``,
      a product of experts (Hinton 2002) that ranks whole translations. It is a score: where members disagree, the
      exponentials of a step sum to less than 1, so that each disagreement costs the translation something.
    - ``log_probs``, the default: the same, made a distribution again at each step. A translation has a probability, as
      with one model, so that there are a loss and a perplexity; what members disagree about costs nothing by itself.

    Shallow fusion (Gulcehre et al. 2015, arXiv:1503.03535, section 4.1) then adds ``language_model_weight * log p_lm``;
    what comes out is a score, no distribution any more.

    The members share the target vocabulary and read the same source ids (else :class:`WithMappedIds`). The language
    model reads no source. What has the weight 0 is never run, and one member alone is passed through.

    Alignments are the weighted mean of those of the members that have any.

    Args:
        members: the models.
        weights: one for each, at least 0; by default all alike.
        average: what the mean is taken of.
        language_model: a model of the target language alone, as ``model=rnnlm`` trains it.
        language_model_weight: of its log probabilities, at least 0.

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
        checked = _check_weights(len(members), [1.0] * len(members) if weights is None else weights)
        if average not in AVERAGES:
            raise ConfigError(f"the average of an ensemble is {average!r}, expected one of {', '.join(AVERAGES)}")
        if not 0 <= language_model_weight < np.inf:
            raise ConfigError(
                f"the language model's weight is {language_model_weight}, expected a number of at least 0"
            )
        self.vocab_size = members[0].vocab_size
        for model in (*members, *([] if language_model is None else [language_model])):
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
        self.language_model = language_model if language_model_weight else None
        self.language_model_weight = language_model_weight

    @property
    def is_distribution(self) -> bool:
        """Whether the probabilities of the next token sum to 1, so that a translation has a probability."""
        normalised = self.average != "unnormalised_log_probs" or len(self.members) == 1
        return normalised and self.language_model is None

    def start(self, src: Sequence[Sequence[int]]) -> EnsembleState:
        """Encodes the sentences (token ids, EOS included) with each member."""
        language_model = None if self.language_model is None else self.language_model.start([[EOS]] * len(src))
        return EnsembleState(tuple(member.start(src) for member in self.members), language_model)

    def step(self, tokens: NDArray[np.int64], state: EnsembleState, k: int) -> tuple[Candidates, EnsembleState]:
        """One step of each model; the ``k`` best of the mean come out, ties in the order of their ids."""
        if len(self.members) == 1 and self.language_model is None:
            candidates, after = self.members[0].step(tokens, state.members[0], k)
            return candidates, EnsembleState((after,), None)
        stepped = [full_log_probs(m, tokens, s) for m, s in zip(self.members, state.members, strict=True)]
        log_probs = mean_log_probs([found[0] for found in stepped], self.weights, self.average)
        language_model = None
        if self.language_model is not None:
            of_language, _, language_model = full_log_probs(self.language_model, tokens, state.language_model)
            log_probs = log_probs + self.language_model_weight * of_language
        best = _best(log_probs, min(k, self.vocab_size))
        top = np.take_along_axis(log_probs, best, axis=1).astype(np.float32)
        alignments = _mean_alignments([found[1] for found in stepped], self.weights)
        return Candidates(top, best, alignments), EnsembleState(tuple(found[2] for found in stepped), language_model)

    def select(self, state: EnsembleState, rows: NDArray[np.int64]) -> EnsembleState:
        """See StepFunction."""
        return self._each(state, lambda model, own: model.select(own, rows))

    def keep(self, state: EnsembleState, sentences: NDArray[np.int64]) -> EnsembleState:
        """See StepFunction."""
        return self._each(state, lambda model, own: model.keep(own, sentences))

    def _each(self, state: EnsembleState, change: Callable[[StepFunction, State], State]) -> EnsembleState:
        members = tuple(change(member, own) for member, own in zip(self.members, state.members, strict=True))
        other = None if self.language_model is None else change(self.language_model, state.language_model)
        return EnsembleState(members, other)


class WithMappedIds:
    """A model that gets source ids of another vocabulary, or in another order, than its own.

    It has no alignments: they would be over other tokens.

    Args:
        step_fn: the model.
        recode: makes its source ids of those given, both without EOS.
    """

    def __init__(self, step_fn: StepFunction, recode: Callable[[Sequence[int]], list[int]]) -> None:
        self.step_fn, self.recode = step_fn, recode
        self.vocab_size, self.has_attention = step_fn.vocab_size, False

    def start(self, src: Sequence[Sequence[int]]) -> State:
        """See StepFunction."""
        return self.step_fn.start([[*self.recode(ids[:-1]), EOS] for ids in src])

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """See StepFunction."""
        candidates, state = self.step_fn.step(tokens, state, k)
        return candidates._replace(alignments=None), state

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """See StepFunction."""
        return self.step_fn.select(state, rows)

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        """See StepFunction."""
        return self.step_fn.keep(state, sentences)


def mean_log_probs(
    log_probs: Sequence[NDArray[np.float32]], weights: NDArray[np.float64], average: Average
) -> NDArray[np.float64]:
    """The weighted mean of distributions ``[rows, vocab]``, see :class:`Ensemble`; a row of -inf where none is left.

    ``weights`` are positive and sum to 1.
    """
    if average == "probs":
        top = _finite(np.maximum.reduce(log_probs))
        return _log(sum(weight * np.exp(part - top) for part, weight in zip(log_probs, weights, strict=True))) + top
    total = sum(weight * part for part, weight in zip(log_probs, weights, strict=True))
    if average == "unnormalised_log_probs":
        return np.asarray(total)
    top = _finite(np.max(total, axis=1, keepdims=True))
    norm = _log(np.exp(total - top).sum(axis=1, keepdims=True)) + top
    return np.asarray(total - _finite(norm))


def _finite(x: NDArray[np.floating]) -> NDArray[np.floating]:
    """0 for -inf, from which nothing can be subtracted."""
    return np.where(np.isneginf(x), 0.0, x)


def _log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # 0, where no probability is left
        return np.log(x)


def _best(log_probs: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The ids of the ``k`` largest of each row, best first."""
    if k < log_probs.shape[1]:
        some = np.sort(np.argpartition(-log_probs, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(-np.take_along_axis(log_probs, some, axis=1), axis=1, kind="stable")
        return np.take_along_axis(some, order, axis=1)
    return np.argsort(-log_probs, axis=1, kind="stable")


def _mean_alignments(
    alignments: Sequence[NDArray[np.float32] | None], weights: NDArray[np.float64]
) -> NDArray[np.float32] | None:
    have = [(part, weight) for part, weight in zip(alignments, weights, strict=True) if part is not None]
    if not have:
        return None
    mean = sum(weight * part for part, weight in have) / sum(weight for _, weight in have)
    return np.asarray(mean, dtype=np.float32)


def _check_weights(members: int, weights: Sequence[float]) -> NDArray[np.float64]:
    if not members:
        raise ConfigError("an ensemble of no models, expected at least one; name some with ckpt=[...] or bundle=[...]")
    checked = np.asarray(weights, dtype=np.float64)
    if len(checked) != members or not (np.isfinite(checked) & (checked >= 0)).all() or not checked.any():
        raise ConfigError(
            f"the weights of an ensemble of {members} models are {list(weights)}, expected {members} numbers of at "
            "least 0 that are not all 0"
        )
    return checked
