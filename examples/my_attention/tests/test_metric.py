"""The metric."""

import pytest
from my_attention.metric import MyAttentionMetric


def test_known_values() -> None:
    metric = MyAttentionMetric()
    assert metric.corpus_score(["a b c"], ["a b c"]) == 100
    assert metric.corpus_score(["x"], ["a b"]) == 0
    assert metric.corpus_score(["a b b c", ""], ["b a d", "e"]) == pytest.approx(100 * 2 * 2 / (4 + 4))
    assert metric.corpus_score([""], [""]) == 0
