"""Runs side by side: who is best at what, and files that say it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from softsearch.report.comparison import Run, compare_runs, objectives, pareto_front, write_comparison
from tests.unit.report.page.pages import Page

SIGNATURE = "nrefs:1|tok:none"


def trained(name: str, bleu: float, training: float | None, parameters: int | None, **more: str) -> Run:
    values = {"test_set": "t", "signature": SIGNATURE} | more
    return Run(name, f"runs/{name}", "rnn", bleu, training=training, parameters=parameters, **values)


RUNS = [
    trained("small", 24.0, 15_500, 1_900_000),
    trained("beaten", 38.0, 6_300, 3_400_000),
    trained("good", 41.0, 12_100, 2_400_000),
    trained("large", 41.9, 1_500, 44_000_000),
    trained("unknown", 39.0, 5_100, None),
    Run("dead", "runs/dead", missing="the run has not ended"),
]


def test_the_front_is_what_nothing_beats() -> None:
    points = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [0.0, 9.0]])
    ways = {"a": "maximize", "b": "maximize"}
    assert pareto_front(points, ways).tolist() == [True, True, True, False, True, True]
    assert pareto_front(points, {"a": "maximize", "b": "minimize"}).tolist() == [True] + [False] * 5


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_that_of_the_definition(seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 5, size=(40, 3)).astype(float)
    signed = points * [1, 1, -1]
    expected = [not any((q >= p).all() and (q > p).any() for q in signed) for p in signed]
    assert pareto_front(points, objectives("training")).tolist() == expected
    assert 0 < sum(expected) < 40


def test_runs_are_ordered_and_the_best_are_starred() -> None:
    found = compare_runs(RUNS)
    assert [run.name for run in found.scored] == ["large", "good", "unknown", "beaten", "small"]
    assert found.best == [True, True, False, False, True]
    assert [run.name for run in found.unscored] == ["dead"]
    assert found.warnings == ["not in the plot, for speed while training or parameters are not known: unknown"]
    assert found.columns == ["no.", "run", "model", "BLEU", "training, tokens/s", "parameters"]
    assert found.rows[1] == ["2*", "good", "rnn", "41.0", "12,100", "2,400,000"]


def test_speed_is_the_kind_that_more_runs_have() -> None:
    evaluated = [Run(n, n, bleu=b, translating=s, parameters=7) for n, b, s in (("a", 1.0, 9.0), ("b", 2.0, 8.0))]
    found = compare_runs([*evaluated, trained("c", 3.0, 99.0, 7)])
    assert found.speed == "translating"
    assert found.best == [False, True, True]  # c is not known to be fast


@pytest.mark.parametrize("key", ["test_set", "signature"])
def test_scores_that_cannot_be_compared_are_said_to_be(key: str) -> None:
    (warning,) = compare_runs([trained("a", 1.0, 1, 1), trained("b", 2.0, 1, 1, **{key: "other"})]).warnings
    assert "must not be compared" in warning
    assert "other" in warning


def test_training_and_evaluation_may_have_the_same_test_set() -> None:
    evaluated = Run("b", "b", bleu=2.0, translating=1.0, parameters=1, test_set="t.en, t.de", signature=SIGNATURE)
    first, second = compare_runs([trained("a", 1.0, None, 1), evaluated]).warnings
    assert "(t; t.en, t.de): compare their scores only if that is the same text" in first
    assert second.startswith("not in the plot")


def test_everything_is_written(tmp_path: Path) -> None:
    written = write_comparison(compare_runs(RUNS), tmp_path / "new")
    assert written == ["results.csv", "results.json", "pareto.png", "comparison.html"]
    rows = json.loads((tmp_path / "new" / "results.json").read_text())
    assert [row["name"] for row in rows] == ["large", "good", "unknown", "beaten", "small", "dead"]
    assert [row["pareto"] for row in rows] == [True, True, False, False, True, False]
    with (tmp_path / "new" / "results.csv").open(newline="") as file:
        assert [row["missing"] for row in csv.DictReader(file)][-1] == "the run has not ended"
    page = Page(tmp_path / "new" / "comparison.html").root
    runs, without = page.all("table")
    assert [cell.text for cell in runs.all("th", scope="row")] == ["1*", "2*", "3", "4", "5*"]
    assert [cell.text for cell in without.all("td")] == ["the run has not ended"]
    assert len(page.all("img")) == 1
    assert not page.all("script")


def test_one_point_is_no_plot(tmp_path: Path) -> None:
    written = write_comparison(compare_runs([RUNS[0], RUNS[4]]), tmp_path)
    assert written == ["results.csv", "results.json", "comparison.html"]
    assert not Page(tmp_path / "comparison.html").root.all("img")
