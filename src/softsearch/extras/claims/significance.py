"""Two-sided p-values of differences between trainings, and the smallest difference that their tests would find.

Permutation test: Fisher 1935. Bootstrap over seeds and sentences: Koehn 2004 (W04-3250) for the sentences, Rao & Wu
1988 for the seeds.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import atan, comb, cos, pi, sin, sqrt
from statistics import NormalDist, mean, variance

import numpy as np
from numpy.typing import NDArray

SIGNIFICANCE = 0.05
ENOUGH = 4  # seeds a side: three have no p below 0.1
POWER = 0.8  # share of trials in which the smallest effect is found
_DRAWS = 2000
_TRIALS = 500
_ROUNDING = 1e-12


def enough(left: int, right: int | None) -> bool:
    """Tells whether the seeds of each side can decide; ``right`` is None for a comparison with a number."""
    if right is None:
        return left >= ENOUGH
    return (2 if left == right else 1) / comb(left + right, left) <= SIGNIFICANCE


def permutation_p(left: Sequence[float] | NDArray[np.float64], right: Sequence[float] | NDArray[np.float64]) -> float:
    """Returns the exact two-sided p-value of the difference of two means.

    It is the share of all divisions of the values into groups of these sizes whose difference is as large, in either
    direction. Four seeds a side have 70 divisions, so their least p is 2 / 70; that of three is 2 / 20.
    """
    pooled = np.array([*left, *right])
    sums = pooled[_divisions(len(left), len(right))].sum(axis=1)
    differences = np.abs(sums / len(left) - (pooled.sum() - sums) / len(right))
    return float(np.mean(differences >= differences[0] - _ROUNDING))


@cache
def _divisions(left: int, right: int) -> NDArray[np.int64]:
    """Returns the indices of the left group in each division of pooled values, the actual one first."""
    return np.array(list(combinations(range(left + right), left)))


def t_test_p(values: Sequence[float], number: float) -> float:
    """Returns the two-sided p-value of Student's t-test that the mean of at least two differing values is a number."""
    t = (mean(values) - number) / sqrt(variance(values) / len(values))
    return _beyond(abs(t), len(values) - 1)


def _beyond(t: float, degrees: int) -> float:
    """Returns the probability that Student's t is not between ``-t`` and ``t``, or 1e-12, the least that is exact.

    Source: Abramowitz & Stegun 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = total = (cos(angle) if odd else 1.0) if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    within = 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return max(1 - within, _ROUNDING)


def bootstrap_p(
    left: NDArray[np.float64], right: NDArray[np.float64], difference: float, sentences: int
) -> float | None:
    """Returns the two-sided p-value of a difference of means by a bootstrap over seeds and sentences together.

    Each draw takes one resample of the sentences, the same for both sides, and one seed fewer than there are, with
    replacement, which gives the means their variance (Rao & Wu 1988). The deviation of the draws is the standard error
    of a t-test: a share of the draws would decide too often for 60 sentences.

    Args:
        left: scores of resampled sentences, ``[seeds, resamples]``.
        right: those of the same resamples, or a number for all, ``[1, 1]``.
        difference: the difference between the means over seeds for the sentences themselves.
        sentences: the number of sentences.

    Returns:
        the p-value; None if all resamples have the same score, and tell nothing about chance.
    """
    rng = np.random.default_rng(1)
    resample = rng.integers(max(left.shape[1], right.shape[1]), size=_DRAWS)
    means = []
    for side in (left, right):
        seeds = rng.integers(len(side), size=(max(1, len(side) - 1), _DRAWS))
        means.append(side[seeds, resample % side.shape[1]].mean(axis=0))
    error = float(np.std(means[0] - means[1])) * sqrt(sentences / (sentences - 1))
    return _beyond(abs(difference) / error, sentences - 1) if error else None


def smallest_effect(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Returns the difference of two means that their test finds with a power of 0.8, if values are normal.

    It depends on the deviation within the two sides, estimated from the same values. The test is the permutation test;
    where the values of one side are all the same, Student's t-test of the other one. None: it has too few values.
    """
    varied = [side for side in (left, right) if len(set(side)) > 1]
    degrees = sum(len(side) - 1 for side in varied)
    if not varied or not enough(len(left), len(right)):
        return None
    deviation = sqrt(sum((len(side) - 1) * variance(side) for side in varied) / degrees)
    if len(varied) == 2:
        return deviation * _found_effect(len(left), len(right))
    quantiles = sum(_t_quantile(share, degrees) for share in (1 - SIGNIFICANCE / 2, POWER))
    return deviation * quantiles / sqrt(len(varied[0]))


@cache
def _found_effect(left: int, right: int) -> float:
    """Returns the difference, in standard deviations, that ``permutation_p`` finds with a power of 0.8, by simulation.

    For the four seeds a side that claims have, it is 2.9, where a t-test would need 2.4.
    """
    trials = np.random.default_rng(1).standard_normal((_TRIALS, left + right))
    low, high = 0.0, 16.0
    while high - low > 0.02:
        effect = (low + high) / 2
        ps = [permutation_p(values[:left] + effect, values[left:]) for values in trials]
        if np.mean(np.array(ps) <= SIGNIFICANCE) < POWER:
            low = effect
        else:
            high = effect
    return high


def _t_quantile(share: float, degrees: int) -> float:
    """Returns a quantile of Student's t, from the first terms of Hill's expansion around the normal (1970)."""
    z = NormalDist().inv_cdf(share)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3
