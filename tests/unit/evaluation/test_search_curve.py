"""Search errors, counted by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from softsearch.evaluation.measure import Translations
from softsearch.evaluation.metrics import BLEU
from softsearch.evaluation.schema import SearchPoint
from softsearch.evaluation.search_curve import search_curve
from softsearch.evaluation.test_set import HeldOutText
from softsearch.search.interface import Hypothesis
from softsearch.search.options import SearchOptions


def found(*log_probs: float, truncated: tuple[int, ...] = (), tokens: int = 1) -> list[Hypothesis]:
    return [
        Hypothesis(tuple(range(4, 4 + tokens)), log_prob, log_prob, None, truncated=index in truncated)
        for index, log_prob in enumerate(log_probs)
    ]


def curve(searches: dict[str, list[Hypothesis]], length_penalty: float = 0) -> list[SearchPoint]:
    """The points of searches with these translations."""
    references = ["a b c d"] * len(next(iter(searches.values())))
    evaluator: Any = SimpleNamespace(
        metrics={"bleu": BLEU()},
        text=HeldOutText("t", references, references, "lc_tok", "en", "de"),
        translate=lambda _system, hypotheses: Translations(hypotheses, references, 2.0),
    )
    options = SearchOptions(length_penalty=length_penalty)
    points, _ = search_curve(evaluator, SimpleNamespace(name="one"), searches, options)  # type: ignore[arg-type]
    return points


def test_an_error_is_what_another_search_beats() -> None:
    searches = {
        "greedy": found(-1, -4, -3, -0.5, truncated=(3,)),
        "beam 5": found(-1.00001, -2, -3, -9),
        "exact": found(-1, -2, -1, -9),
    }
    points = curve(searches, length_penalty=1)
    # greedy: the second and third were beaten, the fourth was not ended; beam 5: the third
    assert [point.search_errors for point in points] == [0.75, 0.25, 0]
    assert [point.empty for point in points] == [0, 0, 0]
    assert [point.mean_log_prob for point in points] == pytest.approx([-8.5 / 4, -15.00001 / 4, -13 / 4])
    assert (points[1].name, points[1].seconds, points[1].quality) == ("beam 5", 2.0, pytest.approx(100))


def test_scores_are_of_one_length_penalty() -> None:
    (point,) = curve({"exact": found(-6, tokens=2)}, length_penalty=1)
    assert point.mean_score == pytest.approx(-2)  # three tokens with EOS
    (point,) = curve({"greedy": found(-6, tokens=2, truncated=(0,))}, length_penalty=1)
    assert point.mean_score == pytest.approx(-3)


def test_translations_without_words_are_counted() -> None:
    assert curve({"exact": [*found(-1, tokens=0), *found(-1, -2, -3)]})[0].empty == 0.25


def test_one_search_alone_knows_of_no_errors() -> None:
    assert curve({"greedy": found(-1)})[0].search_errors is None
