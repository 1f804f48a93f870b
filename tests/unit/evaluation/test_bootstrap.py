"""Intervals are as wide as sacreBLEU's and contain the score; paired tests are sacreBLEU's, for every metric."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import sacrebleu.metrics
from sacrebleu.significance import PairedTest

from softsearch.evaluation.bootstrap import Resamples, interval, paired_bootstrap, resample
from softsearch.evaluation.metrics import BLEU, TER, ChrF, ExactMatch, Metric
from softsearch.evaluation.schema import Comparison, Score

REFERENCES = [f"the {noun} sat on the {thing} and slept" for noun in ("cat", "dog", "cow") for thing in ("mat", "bed")]
WORSE = [line.replace("slept", "ran away") if i % 2 else line for i, line in enumerate(REFERENCES)]
MIXED = [line.replace("sat", "lay") if i % 3 else line for i, line in enumerate(REFERENCES)]
METRICS: Mapping[str, Metric] = {"bleu": BLEU(), "chrf": ChrF(), "ter": TER()}


def scored(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    return interval(metric, resample(metric, metric.table(hypotheses, references)))


def compared(systems: Mapping[str, Sequence[str]], references: Sequence[str]) -> list[Comparison]:
    def of(hypotheses: Sequence[str]) -> dict[str, Resamples]:
        return {name: resample(metric, metric.table(hypotheses, references)) for name, metric in METRICS.items()}

    return paired_bootstrap({name: of(hypotheses) for name, hypotheses in systems.items()})


def test_intervals_signatures_and_p_values_are_sacrebleus() -> None:
    references, systems = REFERENCES * 3, {"a": WORSE * 3, "b": MIXED * 3}
    theirs = {"bleu": sacrebleu.metrics.BLEU(), "chrf": sacrebleu.metrics.CHRF(), "ter": sacrebleu.metrics.TER()}
    signatures, results = PairedTest(list(systems.items()), theirs, [references], "bs")()
    results.pop("System")
    for metric, comparison, results_of, signature in zip(
        METRICS.values(), compared(systems, references), results.values(), signatures.values(), strict=True
    ):
        own, other = results_of
        found = scored(metric, systems["a"], references)
        assert found.value == pytest.approx(own.score)
        assert found.low < found.value < found.high
        assert found.high - found.low == pytest.approx(2 * own.ci, rel=1e-4)
        assert found.signature == str(signature)
        assert comparison.difference == pytest.approx(other.score - own.score)
        assert comparison.p_value == pytest.approx(other.p_value, abs=0.003)  # theirs are in float32


def test_a_perfect_system_has_no_spread() -> None:
    found = scored(BLEU(), REFERENCES, REFERENCES)
    assert (found.low, found.high) == pytest.approx((100, 100))


@pytest.mark.parametrize("metric", METRICS.values())
def test_resamples_that_score_nothing_are_no_error(metric: Metric) -> None:
    found = scored(metric, ["zzz", "the cat sat here"], ["a", "the cat sat here"])
    assert found.low < found.value < found.high


def test_no_interval_exceeds_the_scores_limits() -> None:
    references = [f"the cat number {n} is here" for n in range(20)]
    hypotheses = ["the cat number 0 was here", *references[1:]]
    assert scored(BLEU(), hypotheses, references).high == pytest.approx(100)
    assert scored(TER(), hypotheses, references).low == 0
    assert scored(TER(), ["a b c d e f g h i j k l m n"] * 20, references).high > 100


@pytest.mark.parametrize(
    ("value", "resamples", "expected"),
    [
        (100.0, [99.9] * 1000, (99.9, 100.0)),  # a score above all resamples
        (1.0, [2.0] * 1000, (1.0, 2.0)),
        (500.0, range(1000), (25.0, 974.0)),
    ],
)
def test_an_interval_contains_its_score(value: float, resamples: Sequence[float], expected: tuple[float, ...]) -> None:
    found = interval(ExactMatch(), Resamples(value, np.array(resamples, dtype=float)))
    assert (found.low, found.value, found.high) == (expected[0], value, expected[1])


def test_shares_have_the_spread_of_a_binomial() -> None:
    found = scored(ExactMatch(), ["a"] * 50 + ["b"] * 50, ["a"] * 100)
    # 1.96 * sqrt(0.5 * 0.5 / 100) = 0.098
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.402, 0.598), abs=0.02)
    assert found.signature == "bs:1000|seed:12345"


def test_a_clearly_worse_system_is_told_apart_and_an_equal_one_is_not() -> None:
    found = compared({"good": REFERENCES * 20, "bad": WORSE * 20, "twin": REFERENCES * 20}, REFERENCES * 20)
    assert [(c.system, c.baseline, c.metric) for c in found] == [
        (system, "good", metric) for system in ("bad", "twin") for metric in METRICS
    ]
    bleu, chrf, ter = found[:3]
    assert bleu.difference == pytest.approx(BLEU().corpus_score(WORSE * 20, REFERENCES * 20) - 100)
    assert chrf.difference < 0 < ter.difference
    assert all(c.p_value < 0.01 for c in found[:3])
    assert [(c.difference, c.p_value) for c in found[3:]] == [(0, 1)] * 3


def test_one_system_is_compared_with_nothing() -> None:
    assert compared({"only": WORSE}, REFERENCES) == []
