"""Search options: length limits, constraints, beam size, and the length and coverage penalties of scores."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.text.vocabulary import EOS

MAX_BEAM = 1000  # hypotheses of a sentence; each has caches of its own
MAX_LENGTH_PENALTY = 10  # any length to this power fits into a float
MAX_LENGTH_FACTOR, MAX_LENGTH_OFFSET = 1000, 2**20  # such limits fit into arrays of lengths
LengthNorm = Literal["power", "gnmt"]
LENGTH_NORMS: tuple[LengthNorm, ...] = get_args(LengthNorm)
Check = tuple[bool, str, object, str]  # whether it holds; the option's name, its value and what was expected

# Attention may be exactly 0 (outside a window, or by underflow), and no score may be -inf because of it.
_LEAST_ATTENTION = 1e-10


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Limits and constraints on translations, the same for all searches that write from left to right.

    Lengths count EOS. Constraints cost candidates: a step asks for as many more as they may forbid.

    Args:
        max_length_factor: the length limit is ``max_length_factor * src_len + max_length_offset`` tokens.
        max_length_offset: see ``max_length_factor``.
        min_length_factor: EOS is forbidden below ``min_length_factor * src_len + min_length_offset`` tokens, except
            at the length limit.
        min_length_offset: see ``min_length_factor``.
        banned: ids of tokens that are never generated.
        no_repeat_ngram: no n-gram of this size is generated twice; 0 is no limit.
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
        check_options(
            within("max_length_factor", self.max_length_factor, 0, MAX_LENGTH_FACTOR),
            within("max_length_offset", self.max_length_offset, 1, MAX_LENGTH_OFFSET),
            within("min_length_factor", self.min_length_factor, 0, MAX_LENGTH_FACTOR),
            within("min_length_offset", self.min_length_offset, 0, MAX_LENGTH_OFFSET),
            within("no_repeat_ngram", self.no_repeat_ngram, 0),
            (all(type(token) is int and token >= 0 for token in self.banned), "banned", self.banned, "token ids"),
            (EOS not in self.banned, "banned", self.banned, f"no EOS ({EOS}), without which no translation can end"),
        )

    def max_length(self, src_len: int) -> int:
        """The most tokens, EOS included, of a translation of ``src_len`` source tokens (EOS excluded)."""
        return int(self.max_length_factor * src_len) + self.max_length_offset

    def min_length(self, src_len: int) -> int:
        """The fewest tokens, EOS included, of a translation of ``src_len`` source tokens (EOS excluded)."""
        return min(int(self.min_length_factor * src_len) + self.min_length_offset, self.max_length(src_len))


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OutputOptions):
    """Options of beam search, besides the :class:`OutputOptions`.

    The score of a translation of ``length`` tokens, EOS included, is ``log_prob / length_norm(length) +
    coverage_penalty * coverage``.

    Args:
        beam: hypotheses kept per sentence, at most 1,000.
        n_best: translations returned per sentence, at most ``beam``.
        length_penalty: ``alpha`` of the norm, at most 10; 0 is none, and 1 with ``length_norm="power"`` is the average.
        length_norm: the norm is ``length ** alpha`` (``power``), or ``((5 + length) / 6) ** alpha`` (``gnmt``).
        coverage_penalty: ``beta`` of GNMT's coverage penalty; needs a model with attention.
        exact_stop: go on until no unfinished hypothesis can enter the n-best list, however many have ended; otherwise
            stop at ``beam`` ended ones too.
        groups: of diverse beam search; each has ``beam / groups`` hypotheses.
        diversity: penalty on a group's token, in nats, for each earlier group's hypothesis that just took it.

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
        super().__post_init__()
        check_options(
            within("beam", self.beam, 1, MAX_BEAM),
            within("n_best", self.n_best, 1),
            (self.n_best <= self.beam, "n_best", self.n_best, f"at most beam ({self.beam})"),
            within("length_penalty", self.length_penalty, 0, MAX_LENGTH_PENALTY),
            (self.length_norm in LENGTH_NORMS, "length_norm", self.length_norm, f"one of {', '.join(LENGTH_NORMS)}"),
            within("coverage_penalty", self.coverage_penalty, 0),
            within("groups", self.groups, 1),
            (self.beam % max(self.groups, 1) == 0, "groups", self.groups, f"a divisor of beam ({self.beam})"),
            within("diversity", self.diversity, 0),
        )

    def score(self, log_prob: float, length: int, attended: NDArray[np.floating] | None = None) -> float:
        """The score of a hypothesis of ``length`` tokens, EOS included; higher is better.

        ``attended`` is the attention that each source token got from all of them, ``[src_len]``; without it the
        coverage penalty is left out.
        """
        score = float(log_prob / length_norm(length, self.length_penalty, self.length_norm))
        if attended is None or not self.coverage_penalty:
            return score
        return score + self.coverage_penalty * coverage(attended)

    def bound(self, log_probs: NDArray[np.float64], limits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Upper bounds on the scores of what unfinished hypotheses become within ``limits`` tokens.

        Log probabilities only fall, no norm is greater than the one at the length limit, and the coverage penalty is
        never above 0.
        """
        return np.asarray(log_probs / length_norm(limits, self.length_penalty, self.length_norm))


def length_norm(length: int | NDArray[np.int64], alpha: float, form: LengthNorm) -> float | NDArray[np.floating]:
    """The divisor of a log probability, without which search prefers short translations; never falls with the length.

    ``gnmt`` is lp(Y) of Wu et al. 2016 (arXiv:1609.08144, section 7, equation 14), which Vaswani et al. 2017 use too.
    ``power`` is the same without its constant: 1 for ``alpha`` 0, so that ``alpha`` 1 gives the mean per token.
    """
    return length**alpha if form == "power" else ((5 + length) / 6) ** alpha


def coverage(attended: NDArray[np.floating]) -> float:
    """cp(X; Y) of Wu et al. 2016 (section 7, equation 14) for a ``beta`` of 1: 0 or less.

    ``attended`` is the attention that each source token, EOS included, got from all target tokens, ``[src_len]``.
    """
    return float(np.log(np.clip(attended, _LEAST_ATTENTION, 1.0)).sum())


def within(name: str, value: float, least: float, most: float = math.inf) -> Check:
    """Returns the check that an option is a finite number from ``least`` to ``most``."""
    expected = f"at least {least}" if most == math.inf else f"{least} to {most}"
    return least <= value <= most and value < math.inf, name, value, expected


def check_options(*checks: Check) -> None:
    """Refuses an option whose check does not hold.

    Raises:
        ConfigError: names the option, its value and what was expected.
    """
    for holds, name, value, expected in checks:
        if not holds:
            raise ConfigError(f"search.{name} is {value}, expected {expected}; change {name}")
