"""Search options with their types, ranges and descriptions; length limits, length and coverage penalties.

A strategy's options are the fields of its dataclass, with ``Option`` in their annotations. YAML, the command line,
the HTTP interface, bundles and docs/search.md use the same names, and take their descriptions from here.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.option import CheckedOptions, Option, expect
from softsearch.ranges import Range
from softsearch.text.vocabulary import EOS

# Attention may be exactly 0 (outside a window, or by underflow), which must not make a score -inf.
_MIN_ATTENTION = 1e-10


LengthNorm = Literal["power", "gnmt"]
Average = Literal["log_probs", "unnormalised_log_probs", "probs"]  # of the models of an ensemble
AVERAGES: tuple[Average, ...] = get_args(Average)
RANKING = ("beam", "n_best", "length_penalty", "length_norm", "diversity")  # the last has no effect without groups
MAX_BEAM = 1000  # hypotheses per sentence; each has its own caches
Beam = Annotated[int, Range(1, MAX_BEAM), Option("beam size: hypotheses per sentence", 5, recommended=100)]
NBest = Annotated[int, Range(1, 2**20), Option("translations of each sentence", 3)]
LengthPenalty = Annotated[  # any length to such a power fits into a float
    float, Range(0, 10), Option("divide log probabilities by length ** X; 0: off", 1.0)
]
_Factor = Annotated[float, Range(0, 1000)]  # such limits fit into integer arrays
_Tokens = Annotated[int, Range(0, 2**20)]


class Limits(NamedTuple):
    """The fewest and the most tokens of a translation, EOS included."""

    least: int
    most: int


@dataclass(frozen=True, kw_only=True)
class Lengths(CheckedOptions):
    """Limits on the lengths of translations, for all searches; all else is given them by ``lengths``.

    A translation that reaches the maximum may end below the minimum.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    section = "search."
    is_exact: ClassVar[bool] = False  # whether it can prove that a translation is the most probable one

    max_length_factor: Annotated[
        _Factor, Option("maximum target tokens per source token, plus the offset", recommended=10)
    ] = 2.0
    max_length_offset: Annotated[
        int, Range(1, 2**20), Option("maximum target tokens for an empty source", recommended=1000)
    ] = 10
    min_length_factor: Annotated[_Factor, Option("minimum target tokens per source token", recommended=100)] = 0.0
    min_length_offset: Annotated[_Tokens, Option("minimum target tokens for an empty source")] = 0

    def lengths(self, src_len: int) -> Limits:
        """The limits of a translation of ``src_len`` source tokens, EOS excluded."""
        most = int(self.max_length_factor * src_len) + self.max_length_offset
        return Limits(min(int(self.min_length_factor * src_len) + self.min_length_offset, most), most)

    def score(self, log_prob: float, length: int) -> float:
        """The score of a translation of ``length`` tokens, EOS included: its log probability per token."""
        return log_prob / length


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Lengths):
    """Constraints on translations, the same for all searches that write from left to right.

    A step requests as many extra candidates as the constraints may forbid.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    banned: Annotated[
        tuple[_Tokens, ...], Option("tokens that are never generated: names, or ids in YAML (1 is <unk>)")
    ] = ()
    no_repeat_ngram: Annotated[int, Range(0, 100), Option("never repeat a sequence of N tokens; 0: no limit", 3)] = 0
    alignments: Annotated[bool, Option("return the attention weights of each translation", True)] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(EOS not in self.banned, "banned", self.banned, f"no EOS ({EOS}), because no translation could end")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OutputOptions):
    """Options of beam search, in addition to ``OutputOptions``.

    The score of a translation of ``length`` tokens, EOS included, is
    ``log_prob / length_norm(length) + coverage_penalty * coverage``. Search stops when ``beam`` hypotheses have ended;
    with ``exact_stop``, only when no unfinished one can enter the n-best list. Each of the ``groups`` has
    ``beam / groups`` hypotheses.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    beam: Beam = 5
    n_best: NBest = 1
    length_penalty: LengthPenalty = 1.0
    length_norm: Annotated[
        LengthNorm, Option("form of the length penalty: gnmt divides by ((5 + length) / 6) ** X instead", "gnmt")
    ] = "power"
    coverage_penalty: Annotated[
        float,
        Range(0, 100),
        Option("weight of GNMT's coverage penalty, for unattended source words; needs attention", 0.2),
    ] = 0.0
    exact_stop: Annotated[
        bool, Option("stop only when nothing better is possible, not once `beam` have ended", False)
    ] = False
    groups: Annotated[int, Range(1, MAX_BEAM), Option("diverse beam search in N groups, a divisor of `beam`", 1)] = 1
    diversity: Annotated[
        float,
        Range(0, 1000),
        Option("penalty in nats on a token for each earlier group that took it at the same step", 0.5, recommended=100),
    ] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_best > self.beam:
            raise ConfigError(
                f"search.n_best is {self.n_best}, expected at most beam ({self.beam}); set search.beam={self.n_best}"
            )
        expect(self.beam % self.groups == 0, "groups", self.groups, f"a divisor of beam ({self.beam})")

    def has_only(self, options: Collection[str]) -> bool:
        """Tells whether all others than these options, and than ``RANKING``, have their defaults."""
        own = (field for field in fields(self) if field.name not in options and field.name not in RANKING)
        return all(getattr(self, field.name) == field.default for field in own)

    def score(self, log_prob: float, length: int, attended: NDArray[np.floating] | None = None) -> float:
        """The score of a hypothesis of ``length`` tokens, EOS included; higher is better.

        ``attended`` is the total attention that each source token received, ``[src_len]``; without it the coverage
        penalty is left out.
        """
        score = float(log_prob / length_norm(length, self.length_penalty, self.length_norm))
        if attended is None or not self.coverage_penalty:
            return score
        return score + self.coverage_penalty * coverage(attended)

    def bound(self, log_probs: NDArray[np.float64], limits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Upper bounds on the scores that unfinished hypotheses can reach within ``limits`` tokens.

        Log probabilities only fall, no norm is greater than the one at the length limit, and the coverage penalty is
        never positive.
        """
        return np.asarray(log_probs / length_norm(limits, self.length_penalty, self.length_norm))


def length_norm(length: int | NDArray[np.int64], alpha: float, form: LengthNorm) -> float | NDArray[np.floating]:
    """The divisor of a log probability, which keeps search from preferring short translations; grows with the length.

    ``gnmt`` is lp(Y) of Wu et al. 2016 (arXiv:1609.08144, section 7, equation 14), which Vaswani et al. 2017 use too.
    ``power`` is the same without its constants: ``alpha`` 0 divides by 1, ``alpha`` 1 gives the mean per token.
    """
    return length**alpha if form == "power" else ((5 + length) / 6) ** alpha


def coverage(attended: NDArray[np.floating]) -> float:
    """cp(X; Y) of Wu et al. 2016 (section 7, equation 14) with ``beta`` 1; at most 0.

    ``attended`` is the total attention that each source token, EOS included, received, ``[src_len]``.
    """
    return float(np.log(np.clip(attended, _MIN_ATTENTION, 1.0)).sum())
