"""The interface between search and models: four methods, NumPy in and out.

A *sentence* is one source sentence still being translated; a *row* is one hypothesis of a sentence. There are
``rows = sentences * beams`` of them, a sentence's rows side by side. The state is opaque to search: only the
``StepFunction`` that made it reads it.

Token ids of sources, translations and prefixes have neither BOS nor EOS: a StepFunction adds EOS to the sources that
its model reads, and search ends translations with it. Attention covers the source's EOS: ``src_len`` in shapes counts
it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softsearch.text.vocabulary import with_eos

_BLOCK = 64
State = Any
Sentences = Sequence[Sequence[int]]  # token ids without BOS and EOS


class Candidates(NamedTuple):
    """The k most probable next tokens of each row and the attention of the step.

    They are sorted, best first, except that the whole vocabulary (``k = vocab_size``) is in the order of the ids.
    """

    log_probs: NDArray[np.float32]  # [rows, k] natural log
    tokens: NDArray[np.int64]  # [rows, k]
    alignments: NDArray[np.float32] | None  # [rows, src_len], sums to 1 over the source


class StepFunction(Protocol):
    """A model (or several) as search sees it: a PyTorch module, an ONNX bundle or an ensemble of either."""

    vocab_size: int
    has_attention: bool  # whether its steps can return alignments

    def start(self, src: Sentences) -> State:
        """Encodes the sentences, with EOS added, and returns a state with one row for each."""

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """Reads one token per row ``[rows]`` and returns the ``k`` best continuations and the next state.

        With ``k = vocab_size`` all tokens are returned in the order of their ids, see ``whole_vocabulary``.
        """

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """Reorders, repeats or drops rows; the result has the same number of rows for every sentence."""

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        """Keeps only these sentences, which may be repeated, with all their rows."""


class OptionalAlignments(StepFunction):
    """A StepFunction that computes alignments for searches that read them alone."""

    @abstractmethod
    def without_alignments(self) -> StepFunction:
        """Returns the same step function without them."""


class StepFunctionWrapper(StepFunction):
    """Passes everything except steps to another StepFunction; subclasses define ``StepFunction.step``."""

    def __init__(self, step_fn: StepFunction) -> None:
        self.step_fn = step_fn
        self.vocab_size, self.has_attention = step_fn.vocab_size, step_fn.has_attention

    def start(self, src: Sentences) -> State:
        return self.step_fn.start(src)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        return self.step_fn.select(state, rows)

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        return self.step_fn.keep(state, sentences)


@dataclass(frozen=True)
class Hypothesis:
    """One translation."""

    tokens: tuple[int, ...]  # without EOS
    log_prob: float  # natural log of p(tokens, EOS | source); without EOS when truncated
    score: float  # log_prob after the length penalty; higher is better
    alignments: NDArray[np.float32] | None  # [len(tokens) + 1, src_len] (last row is EOS's; absent when truncated)
    truncated: bool  # the length limit was reached before EOS
    optimal: bool | None = None  # exact search: no translation within the length limits has a greater log_prob
    term_cost: float = 0.0  # nats by which log_prob is below that of the translation without required terms

    @property
    def written(self) -> tuple[int, ...]:
        """The tokens as the model wrote them: with EOS, unless truncated."""
        return self.tokens if self.truncated else tuple(with_eos(self.tokens))

    @property
    def length(self) -> int:
        """The number of tokens that the model wrote: EOS counts, unless truncated."""
        return len(self.written)


class SearchStrategy(Protocol):
    """A search (greedy, beam, ...): turns sources into n-best lists, best first."""

    def __call__(self, step_fn: StepFunction, src: Sentences) -> list[list[Hypothesis]]:
        """Translates one batch of sources given as token ids."""


class PrefixStrategy(ABC):
    """A search that writes from left to right and can continue given target prefixes."""

    @abstractmethod
    def __call__(
        self, step_fn: StepFunction, src: Sentences, *, prefixes: Sentences | None = None
    ) -> list[list[Hypothesis]]:
        """Translates one batch of sources given as token ids; returns one n-best list for each, best first.

        The translation of each source begins with the token ids in ``prefixes``, regardless of the model and the
        constraints; a prefix longer than the length limit raises the limit.

        Raises:
            InputError: the model returned NaN, a prefix cannot be written, or the constraints leave no token.
        """


def full_log_probs(
    step_fn: StepFunction, tokens: NDArray[np.int64], state: State
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, State]:
    """Runs one step over the whole vocabulary: each row reads one of ``tokens [rows]``.

    Returns natural log probabilities ``[rows, vocab_size]`` by token id (-inf for tokens that a shortlist forbids), the
    alignments ``[rows, src_len]`` if the model has any, and the next state.
    """
    candidates, state = step_fn.step(tokens, state, step_fn.vocab_size)
    return candidates.log_probs, candidates.alignments, state


def whole_vocabulary(log_probs: NDArray[np.float32], alignments: NDArray[np.float32] | None) -> Candidates:
    """The candidates of a step that requested all tokens, from their log probabilities ``[rows, vocab_size]``."""
    return Candidates(log_probs, np.broadcast_to(np.arange(log_probs.shape[1]), log_probs.shape), alignments)


def best_candidates(
    log_probs: NDArray[np.float32], tokens: NDArray[np.int64], alignments: NDArray[np.float32] | None, k: int
) -> Candidates:
    """The ``k`` most probable tokens of each row (or all, if there are fewer), best first.

    ``log_probs`` are ``[rows, choices]``, ``tokens`` the same or ``[choices]``. Ties keep their order.
    """
    rows, size = log_probs.shape
    starts = np.arange(0, size, _BLOCK)
    if k >= starts.size:
        best = _greatest(log_probs, k)
    else:
        # The k best are in the k blocks with the greatest maxima, which one fast pass finds.
        blocks = np.sort(_greatest(np.maximum.reduceat(log_probs, starts, axis=1), k), axis=1)
        some = (_BLOCK * blocks[:, :, None] + np.arange(_BLOCK)).reshape(rows, -1)
        few = np.where(some < size, np.take_along_axis(log_probs, np.minimum(some, size - 1), axis=1), -np.inf)
        best = np.take_along_axis(some, _greatest(few.astype(np.float32, copy=False), k), axis=1)
    top = np.take_along_axis(log_probs, best, axis=1)
    return Candidates(top, np.take_along_axis(np.broadcast_to(tokens, log_probs.shape), best, axis=1), alignments)


def _greatest(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The indices of the ``k`` greatest values of each row, the greatest first; ties keep their order.

    A float's bits, inverted if negative, sort as the floats do. With the index in the bits below, they are distinct
    integers, which NumPy sorts several times as fast as it sorts floats stably.
    """
    bits = (values + np.float32(0)).view(np.int32).astype(np.int64)  # + 0 turns -0 into 0
    behind = values.shape[1] - 1 - np.arange(values.shape[1])
    keys = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) << 32 | behind
    return values.shape[1] - 1 - (np.sort(keys, axis=1)[:, : -k - 1 : -1] & 0xFFFFFFFF)


def log_sum_exp(log_probs: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    """The log of the sum of probabilities along an axis, which is kept with size 1; -inf where all are 0."""
    top = log_probs.max(axis=axis, keepdims=True)
    top[np.isneginf(top)] = 0.0  # because -inf - -inf is NaN
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_probs - top).sum(axis=axis, keepdims=True)) + top)
