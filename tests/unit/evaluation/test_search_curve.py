"""Search errors, counted by hand."""

import pytest

from softsearch.evaluation.search_curve import SearchResult, search_points
from softsearch.search.interface import Hypothesis
from softsearch.search.options import SearchOptions


def found(*log_probs: float, truncated: tuple[int, ...] = (), tokens: int = 1) -> list[Hypothesis]:
    return [
        Hypothesis(tuple(range(4, 4 + tokens)), log_prob, log_prob, None, truncated=place in truncated)
        for place, log_prob in enumerate(log_probs)
    ]


def test_an_error_is_what_another_search_beats() -> None:
    searches = [
        SearchResult("greedy", found(-1, -4, -3, -0.5, truncated=(3,)), 1.0, 10.0),
        SearchResult("beam 5", found(-1.00001, -2, -3, -9), 2.0, 11.0),
        SearchResult("exact", found(-1, -2, -1, -9), 3.0, 9.0),
    ]
    points = search_points(searches, SearchOptions(length_penalty=1.0))
    # greedy: the second and third were beaten, the fourth was not ended; beam 5: the third
    assert [point.search_errors for point in points] == [0.75, 0.25, 0]
    assert [point.empty for point in points] == [0, 0, 0]
    assert [point.mean_log_prob for point in points] == pytest.approx([-8.5 / 4, -15.00001 / 4, -13 / 4])
    assert [(point.name, point.seconds, point.bleu) for point in points][1] == ("beam 5", 2.0, 11.0)


def test_scores_are_of_one_length_penalty() -> None:
    (point,) = search_points([SearchResult("exact", found(-6, tokens=2), 1.0, 1.0)], SearchOptions(length_penalty=1.0))
    assert point.mean_score == pytest.approx(-2)  # three tokens with EOS
    (point,) = search_points(
        [SearchResult("greedy", found(-6, tokens=2, truncated=(0,)), 1.0, 1.0)], SearchOptions(length_penalty=1.0)
    )
    assert point.mean_score == pytest.approx(-3)


def test_translations_without_words_are_counted() -> None:
    exact = SearchResult("exact", [*found(-1, tokens=0), *found(-1, -2, -3)], 1.0, 1.0)
    assert search_points([exact], SearchOptions())[0].empty == 0.25


def test_one_search_alone_knows_of_no_errors() -> None:
    assert search_points([SearchResult("greedy", found(-1), 1.0, 1.0)], SearchOptions())[0].search_errors is None
