"""Scores with intervals are sacreBLEU's; its tests say when systems differ."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from softsearch.evaluation.bootstrap import compare, resamples, score_with_interval, sentence_chrf, share_with_interval

REFERENCES = [f"the {noun} sat on the {thing} and slept" for noun in ("cat", "dog", "cow") for thing in ("mat", "bed")]
WORSE = [line.replace("slept", "ran away") if i % 2 else line for i, line in enumerate(REFERENCES)]


def test_the_score_is_sacrebleus_and_lies_in_its_interval() -> None:
    found = score_with_interval(CHRF(), WORSE, REFERENCES)
    assert found.value == pytest.approx(CHRF().corpus_score(WORSE, [REFERENCES]).score)
    assert found.low < found.value < found.high
    printed = CHRF().corpus_score(WORSE, [REFERENCES], n_bootstrap=1000)
    assert found.high - found.low == pytest.approx(2 * printed._ci)
    assert "bs:1000|seed:12345" in found.signature


def test_a_perfect_system_has_no_spread() -> None:
    found = score_with_interval(BLEU(), REFERENCES, REFERENCES)
    assert (found.low, found.high) == pytest.approx((100, 100))


@pytest.mark.parametrize("metric", [BLEU(), CHRF(), TER()])
def test_resamples_that_score_nothing_are_no_error(metric: Metric) -> None:
    found = score_with_interval(metric, ["zzz", "the cat sat here"], ["a", "the cat sat here"])
    assert found.low < found.value < found.high


def test_no_interval_exceeds_the_scores_limits() -> None:
    """sacreBLEU's intervals are symmetric about the mean, which may lie near a limit."""
    references = [f"the cat number {n} is here" for n in range(20)]
    hypotheses = ["the cat number 0 was here", *references[1:]]
    assert score_with_interval(BLEU(), hypotheses, references).high == 100
    assert score_with_interval(TER(), hypotheses, references).low == 0
    assert score_with_interval(TER(), ["a b c d e f g h i j k l m n"] * 20, references).high > 100


def test_shares_have_the_spread_of_a_binomial() -> None:
    found = share_with_interval([True] * 50 + [False] * 50)
    # 1.96 * sqrt(0.5 * 0.5 / 100) = 0.098
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.402, 0.598), abs=0.02)
    assert share_with_interval([True, True]) == share_with_interval([True])


def test_a_clearly_worse_system_is_told_apart_and_an_equal_one_is_not() -> None:
    systems = {"good": REFERENCES * 20, "bad": WORSE * 20, "twin": REFERENCES * 20}
    found = compare(systems, {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}, REFERENCES * 20)
    assert [(c.system, c.baseline, c.metric) for c in found] == [
        (system, "good", metric) for system in ("bad", "twin") for metric in ("bleu", "chrf", "ter")
    ]
    bleu, chrf, ter = found[:3]
    assert bleu.difference == pytest.approx(BLEU().corpus_score(WORSE * 20, [REFERENCES * 20]).score - 100)
    assert chrf.difference < 0 < ter.difference
    assert all(c.p_value < 0.01 for c in found[:3])
    assert [(c.difference, c.p_value) for c in found[3:]] == [(0, 1)] * 3


def test_one_system_is_compared_with_nothing() -> None:
    assert compare({"only": WORSE}, {"bleu": BLEU()}, REFERENCES) == []


def test_sentences_are_scored_one_by_one() -> None:
    scores = sentence_chrf([REFERENCES[0], "", REFERENCES[0][:10]], REFERENCES[:1] * 3)
    assert scores[:2] == [pytest.approx(100), 0]
    assert 0 < scores[2] < 100


@pytest.mark.parametrize(("sentences", "expected"), [(1, 1000), (1000, 1000), (14_913, 1000), (100_000, 149)])
def test_large_test_sets_are_resampled_less_often(sentences: int, expected: int) -> None:
    assert resamples(sentences) == expected
    assert resamples(sentences) * sentences * 18 * np.dtype("float32").itemsize <= 2**30
