"""Bootstrap intervals of corpus scores, and paired bootstrap tests (Koehn 2004, W04-3250) equal to sacreBLEU's."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.evaluation.metrics import Metric, Table
from softsearch.evaluation.schema import Comparison, Score

RESAMPLES = 1000
_SEED = 12345  # as in sacreBLEU


class Resamples(NamedTuple):
    """A score, and the scores of resampled sentences, the same ones for every system."""

    value: float
    resamples: NDArray[np.float64]


def resample(metric: Metric, table: Table) -> Resamples:
    """Scores sentences, and resamples of them with replacement, from their statistics."""
    generator, sentences = np.random.default_rng(_SEED), len(table)
    counts = (np.bincount(generator.integers(sentences, size=sentences), minlength=sentences) for _ in range(RESAMPLES))
    return Resamples(metric.score(table.sum(axis=0)), np.array([metric.score(row @ table) for row in counts]))


def interval(metric: Metric, resampled: Resamples) -> Score:
    """Returns the score with its 95 % interval: percentiles of sacreBLEU's resamples, extended to the score.

    sacreBLEU's own interval is as wide, but about the mean of the resamples, so that a score may be outside.
    """
    low, high = percentiles(resampled.resamples, resampled.value)
    first, *rest = metric.signature.split("|")
    parts = [first, f"bs:{RESAMPLES}", f"seed:{_SEED}", *rest]  # in sacreBLEU's order
    return Score(resampled.value, low, high, "|".join(part for part in parts if part))


def percentiles(resamples: NDArray[np.float64], value: float) -> tuple[float, float]:
    """Returns the 2.5th and 97.5th percentile of resamples of a ``value``, extended to it."""
    ordered = np.sort(resamples)
    tail = len(ordered) // 40
    return min(float(ordered[tail]), value), max(float(ordered[-tail - 1]), value)


def paired_bootstrap(systems: Mapping[str, Mapping[str, Resamples]]) -> list[Comparison]:
    """Compares systems with the first one by each metric.

    Returns:
        The differences (the system minus the first one) with two-sided p-values. If there is no difference, the p-value
        is 1.
    """
    baseline, *others = systems
    return [
        Comparison(
            name, baseline, metric, own.value - systems[baseline][metric].value, p_value(own, systems[baseline][metric])
        )
        for name in others
        for metric, own in systems[name].items()
    ]


def p_value(system: Resamples, baseline: Resamples) -> float:
    """Returns the two-sided p-value: the share of resamples that differ from their mean by more than the systems do."""
    if system.value == baseline.value:
        return 1.0
    differences = np.abs(system.resamples - baseline.resamples)
    greater = (differences - differences.mean() > abs(system.value - baseline.value)).sum()
    return float((greater + 1) / (len(differences) + 1))
