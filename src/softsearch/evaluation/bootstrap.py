"""Bootstrap intervals of corpus scores and paired bootstrap tests, by sacreBLEU (Koehn 2004, W04-3250)."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from sacrebleu.metrics import CHRF, TER
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from softsearch.evaluation.schema import Comparison, Score

RESAMPLES = 1000
_MIN_RESAMPLES = 100
_MAX_NUMBERS = 1 << 28  # resampled by sacreBLEU at once, 4 bytes each
_STATISTICS = 18  # per sentence; chrF has the most
_SEED = 12345  # sacreBLEU's


def score_with_interval(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The corpus score, its 95 % interval and the signature, which names the number of resamples and the seed."""
    # PairedTest of one system is the plain bootstrap. Metric.corpus_score would fail if a resample scores nothing.
    signatures, results = _bootstrap({"system": hypotheses}, {"metric": metric}, references)
    ((name, signature),) = signatures.items()
    (result,) = results[name]
    mean, half = float(result.mean), float(result.ci)  # the interval is symmetric, and scores have limits
    low, high = max(0.0, mean - half), min(inf if isinstance(metric, TER) else 100.0, mean + half)
    return Score(float(result.score), low, high, str(signature))


def share_with_interval(hits: Sequence[bool]) -> Score:
    """The share of true values, 0 to 1: a resample of n zeros and ones is a draw from a binomial distribution."""
    share = float(np.mean(hits))
    drawn = np.random.default_rng(_SEED).binomial(len(hits), share, size=RESAMPLES) / len(hits)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Score(share, float(low), float(high), f"bs:{RESAMPLES}|seed:{_SEED}")


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF of every sentence, 0 to 100."""
    metric = CHRF()
    return [float(metric.sentence_score(h, [r]).score) for h, r in zip(hypotheses, references, strict=True)]


def compare(
    systems: Mapping[str, Sequence[str]], metrics: Mapping[str, Metric], references: Sequence[str]
) -> list[Comparison]:
    """Compares systems with the first one, metric by metric, by sacreBLEU's paired bootstrap.

    Returns:
        The differences (the system minus the first one) with two-sided p-values. The p-value of no difference is 1;
        sacreBLEU gives equal translations its smallest.
    """
    baseline, *others = systems
    if not others:
        return []
    _, results = _bootstrap(systems, metrics, references)
    columns = [column for kind, column in results.items() if kind != "System"]  # in the order of the metrics
    comparisons = []
    for index, name in enumerate(others, start=1):
        for metric, column in zip(metrics, columns, strict=True):
            difference = float(column[index].score - column[0].score)
            p_value = float(column[index].p_value) if difference else 1.0
            comparisons.append(Comparison(name, baseline, metric, difference, p_value))
    return comparisons


def resamples(sentences: int) -> int:
    """The number of resamples: 1000, or fewer if sacreBLEU would need more than about 1 GiB to make all at once."""
    return min(RESAMPLES, max(_MIN_RESAMPLES, _MAX_NUMBERS // (_STATISTICS * sentences)))


def _bootstrap(systems: Mapping[str, Sequence[str]], metrics: Mapping[str, Metric], references: Sequence[str]) -> Any:
    """The signatures and the results of sacreBLEU's test, by sacreBLEU's names of the metrics."""
    named: list[tuple[str, Sequence[str]]] = [(name, list(hypotheses)) for name, hypotheses in systems.items()]
    return PairedTest(named, metrics, [list(references)], test_type="bs", n_samples=resamples(len(references)))()
