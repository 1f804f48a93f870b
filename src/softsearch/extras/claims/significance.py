"""Two-sided p-values of differences between trainings, and the smallest difference that they would detect.

Permutation test: Fisher 1935. Bootstrap over seeds and sentences: Koehn 2004 (W04-3250) for the sentences, Rao & Wu
1988 for the seeds.
"""

from collections.abc import Sequence
from itertools import combinations
from math import atan, comb, cos, pi, sin, sqrt
from statistics import NormalDist, mean, variance

import numpy as np
from numpy.typing import NDArray

SIGNIFICANCE = 0.05
ENOUGH = 4  # seeds a side: three have no p below 0.1
_DRAWS = 2000
_ROUNDING = 1e-12


def enough(left: int, right: int | None) -> bool:
    """Tells whether the seeds of each side can decide; ``right`` is None for a comparison with a number."""
    if right is None:
        return left >= ENOUGH
    return (2 if left == right else 1) / comb(left + right, left) <= SIGNIFICANCE


def permutation_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns the exact two-sided p-value of the difference of two means.

    It is the share of all divisions of the values into groups of these sizes whose difference is as large, in either
    direction. Four seeds a side have 70 divisions, so their least p is 2 / 70; that of three is 2 / 20.
    """
    pooled = np.array([*left, *right])
    chosen = np.array(list(combinations(range(len(pooled)), len(left))))
    sums = pooled[chosen].sum(axis=1)
    differences = sums / len(left) - (pooled.sum() - sums) / len(right)
    return float(np.mean(np.abs(differences) >= abs(mean(left) - mean(right)) - _ROUNDING))


def t_test_p(values: Sequence[float], number: float) -> float:
    """Returns the two-sided p-value of Student's t-test that the mean of at least two differing values is a number."""
    t = (mean(values) - number) / sqrt(variance(values) / len(values))
    return 1 - _within(abs(t), len(values) - 1)


def _within(t: float, degrees: int) -> float:
    """Returns the probability that Student's t is between ``-t`` and ``t`` (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = total = (cos(angle) if odd else 1.0) if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def bootstrap_p(left: NDArray[np.float64], right: NDArray[np.float64], difference: float, sentences: int) -> float:
    """Returns the two-sided p-value of a difference of means by a bootstrap over seeds and sentences together.

    Each draw takes one resample of the sentences, the same for both sides, and one seed fewer than there are, with
    replacement, which gives the means their variance (Rao & Wu 1988). The deviation of the draws is the standard error
    of a t-test: a share of the draws would decide too often for 60 sentences.

    Args:
        left: scores of resampled sentences, ``[seeds, resamples]``.
        right: those of the same resamples, or a number for all, ``[1, 1]``.
        difference: the difference between the means over seeds for the sentences themselves.
        sentences: the number of sentences.
    """
    rng = np.random.default_rng(1)
    resample = rng.integers(max(left.shape[1], right.shape[1]), size=_DRAWS)
    means = []
    for side in (left, right):
        seeds = rng.integers(len(side), size=(max(1, len(side) - 1), _DRAWS))
        means.append(side[seeds, resample % side.shape[1]].mean(axis=0))
    error = float(np.std(means[0] - means[1])) * sqrt(sentences / (sentences - 1))
    return 1 - _within(abs(difference) / error, sentences - 1) if error else float(difference == 0)


def smallest_effect(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Returns the difference of two means that a two-sided t-test at 0.05 detects with a power of 0.8.

    It depends on the deviation within the two sides, estimated from the same values; None for single values.
    """
    degrees = len(left) + len(right) - 2
    if min(len(left), len(right)) < 2:
        return None
    pooled = sum((len(side) - 1) * variance(side) for side in (left, right)) / degrees
    quantiles = sum(_t_quantile(share, degrees) for share in (1 - SIGNIFICANCE / 2, 0.8))
    return quantiles * sqrt(pooled * (1 / len(left) + 1 / len(right)))


def _t_quantile(share: float, degrees: int) -> float:
    """Returns a quantile of Student's t, from the first terms of Hill's expansion around the normal (1970)."""
    z = NormalDist().inv_cdf(share)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3
