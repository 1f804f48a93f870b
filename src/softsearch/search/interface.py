"""What search and the models know of each other: five methods, NumPy in and out.

A *sentence* is one source sentence still being translated; a *row* is one hypothesis of a sentence. There are
``rows = sentences * beams`` of them, a sentence's rows side by side. The state is opaque to search: only the
:class:`StepFunction` that made it looks inside.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.penalties import LENGTH_NORMS, LengthNorm, coverage, length_norm
from softsearch.text.vocabulary import EOS

State = Any
MAX_BEAM = 1000  # hypotheses of a sentence; each has caches of its own
MAX_LENGTH_PENALTY = 10
MAX_LENGTH_FACTOR, MAX_LENGTH_OFFSET = 1000, 2**20  # limits that arrays of lengths can hold
Check = tuple[bool, str, object, str]  # whether it holds; the option's name, its value and what was expected


class Candidates(NamedTuple):
    """The k most probable next tokens of each row, and where the model looked.

    They come best first, but for the whole vocabulary (``k = vocab_size``), which may come in any order.
    """

    log_probs: NDArray[np.float32]  # [rows, k] natural log
    tokens: NDArray[np.int64]  # [rows, k]
    alignments: NDArray[np.float32] | None  # [rows, src_len], sums to 1 over the source


class StepFunction(Protocol):
    """A model (or several) as search sees it: a PyTorch module, an ONNX bundle or an ensemble of either."""

    vocab_size: int
    has_attention: bool  # whether its steps can give alignments

    def start(self, src: Sequence[Sequence[int]]) -> State:
        """Encodes the sentences (token ids, EOS included) and returns a state with one row for each."""
        ...

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """Reads one token per row ``[rows]`` and returns the ``k`` best continuations and the next state."""
        ...

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """Reorders, repeats or drops rows; the result has the same number of rows for every sentence."""
        ...

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        """Keeps only these sentences, with all their rows."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One translation as token ids, without BOS and EOS."""

    tokens: tuple[int, ...]
    log_prob: float  # natural log of p(tokens, EOS | source); without EOS's share when truncated
    score: float  # log_prob after the length penalty; higher is better
    alignments: NDArray[np.float32] | None  # [len(tokens) + 1, src_len] (last row is EOS's; absent when truncated)
    truncated: bool  # the length limit was reached before EOS
    optimal: bool | None = None  # exact search: no translation within the length limits has a greater log_prob


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What translations may be like, whichever way they are searched for.

    Lengths count EOS. The constraints cost candidates: a step asks for as many more as they may forbid.

    Args:
        max_length_factor: the length limit is ``max_length_factor * src_len + max_length_offset`` tokens.
        max_length_offset: see ``max_length_factor``.
        min_length_factor: EOS is forbidden below ``min_length_factor * src_len + min_length_offset`` tokens, but never
            at the length limit.
        min_length_offset: see ``min_length_factor``.
        banned: ids of tokens that never come.
        no_repeat_ngram: no sequence of so many tokens comes twice; 0 is no limit.
        alignments: collect the attention weights of each hypothesis.

    Raises:
        ConfigError: a value is out of range.
    """

    max_length_factor: float = 2.0
    max_length_offset: int = 10
    min_length_factor: float = 0.0
    min_length_offset: int = 0
    banned: tuple[int, ...] = ()
    no_repeat_ngram: int = 0
    alignments: bool = False

    def __post_init__(self) -> None:
        """Checks the ranges."""
        check_options(
            _within("max_length_factor", self.max_length_factor, 0, MAX_LENGTH_FACTOR),
            _within("max_length_offset", self.max_length_offset, 1, MAX_LENGTH_OFFSET),
            _within("min_length_factor", self.min_length_factor, 0, MAX_LENGTH_FACTOR),
            _within("min_length_offset", self.min_length_offset, 0, MAX_LENGTH_OFFSET),
            at_least("no_repeat_ngram", self.no_repeat_ngram, 0),
            (all(_is_id(token) for token in self.banned), "banned", self.banned, "token ids"),
            (EOS not in self.banned, "banned", self.banned, f"no EOS ({EOS}), without which no translation can end"),
        )

    def max_length(self, src_len: int) -> int:
        """The most tokens, EOS included, that a translation of ``src_len`` source tokens (EOS excluded) may have."""
        return int(self.max_length_factor * src_len) + self.max_length_offset

    def min_length(self, src_len: int) -> int:
        """The fewest tokens, EOS included, that a translation of ``src_len`` source tokens (EOS excluded) may have."""
        return min(int(self.min_length_factor * src_len) + self.min_length_offset, self.max_length(src_len))


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OutputOptions):
    """How to compare translations and when to stop looking, besides the :class:`OutputOptions`.

    The score of a translation of ``length`` tokens, EOS counted, is ``log_prob / norm(length) + coverage_penalty *
    coverage`` (:mod:`softsearch.search.penalties`).

    Args:
        beam: hypotheses kept per sentence, at most 1,000.
        n_best: translations returned per sentence, at most ``beam``.
        length_penalty: ``alpha`` of the norm, at most 10; 0 is none, and 1 with ``length_norm="power"`` is the average.
        length_norm: the norm is ``length ** alpha`` (``power``), or ``((5 + length) / 6) ** alpha`` (``gnmt``).
        coverage_penalty: ``beta`` of GNMT's coverage penalty; needs a model with attention.
        exact_stop: go on until no unfinished hypothesis can enter the n-best list, however many have ended; otherwise
            ``beam`` ended ones are enough too.
        groups: of diverse beam search; each has ``beam / groups`` hypotheses.
        diversity: what a group loses for a token, in nats, for each earlier group's hypothesis that just took it.

    Raises:
        ConfigError: a value is out of range.
    """

    beam: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    length_norm: LengthNorm = "power"
    coverage_penalty: float = 0.0
    exact_stop: bool = False
    groups: int = 1
    diversity: float = 0.5

    def __post_init__(self) -> None:
        """Checks the ranges."""
        super().__post_init__()
        check_options(
            (1 <= self.beam <= MAX_BEAM, "beam", self.beam, f"1 to {MAX_BEAM}"),
            at_least("n_best", self.n_best, 1),
            (self.n_best <= self.beam, "n_best", self.n_best, f"at most beam ({self.beam})"),
            length_penalty_in_range(self.length_penalty),
            (self.length_norm in LENGTH_NORMS, "length_norm", self.length_norm, f"one of {', '.join(LENGTH_NORMS)}"),
            at_least("coverage_penalty", self.coverage_penalty, 0),
            at_least("groups", self.groups, 1),
            (self.beam % max(self.groups, 1) == 0, "groups", self.groups, f"a divisor of beam ({self.beam})"),
            at_least("diversity", self.diversity, 0),
        )

    def score(self, log_prob: float, length: int, attended: NDArray[np.floating] | None = None) -> float:
        """The score of a hypothesis of ``length`` tokens, EOS counted; higher is better.

        Args:
            log_prob: natural log.
            length: in tokens.
            attended: the attention that each source token got from all of them, ``[src_len]``; a coverage penalty
                counts where it is given.
        """
        score = float(log_prob / length_norm(length, self.length_penalty, self.length_norm))
        if attended is None or not self.coverage_penalty:
            return score
        return score + self.coverage_penalty * coverage(attended)

    def bound(self, log_probs: NDArray[np.float64], limits: NDArray[np.int64]) -> NDArray[np.float64]:
        """The best scores that unfinished hypotheses can still end with, of at most ``limits`` tokens.

        Log probabilities only fall, no norm is greater than the one at the length limit, and the coverage penalty is
        never above 0: whatever ends later scores less.
        """
        return np.asarray(log_probs / length_norm(limits, self.length_penalty, self.length_norm))


class SearchStrategy(Protocol):
    """Greedy, beam, ...: turns sources into n-best lists, best first."""

    def __call__(self, step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Translates one batch of sources given as token ids with EOS."""
        ...


class PrefixStrategy(ABC):
    """A strategy that writes from left to right, and can be told how translations begin."""

    @abstractmethod
    def __call__(
        self,
        step_fn: StepFunction,
        src: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Hypothesis]]:
        """Translates one batch.

        Args:
            step_fn: the model.
            src: token ids with EOS.
            prefixes: token ids, without EOS, that the translation of each source begins with, whatever the model and
                the constraints say; one that is longer than the length limit raises it.

        Returns:
            One n-best list for each source, best first.

        Raises:
            InputError: the model returned NaN, a prefix cannot be written, or the constraints leave no token.
        """


def at_least(name: str, found: float, least: int) -> Check:
    """That an option is a finite number of at least ``least``."""
    return least <= found < math.inf, name, found, f"at least {least}"


def _within(name: str, found: float, least: int, most: int) -> Check:
    return least <= found <= most, name, found, f"at least {least} and at most {most}"


def length_penalty_in_range(found: float) -> Check:
    """That a length penalty is one that no length raises beyond what a float can hold."""
    return 0 <= found <= MAX_LENGTH_PENALTY, "length_penalty", found, f"0 to {MAX_LENGTH_PENALTY}"


def check_options(*checks: Check) -> None:
    """Refuses a search with an option for which its check does not hold.

    Raises:
        ConfigError: names the option, what was found and what was expected.
    """
    for holds, name, found, expected in checks:
        if not holds:
            raise ConfigError(f"search.{name} is {found}, expected {expected}; change {name}")


def _is_id(token: object) -> bool:
    return isinstance(token, int) and not isinstance(token, bool) and token >= 0
