"""Runs side by side: who is best at what, and files that say it."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.app.compare.compare import compare_runs, pareto_front, print_comparison, write_comparison
from softsearch.app.compare.run_folders import Run

SIGNATURE = "nrefs:1|tok:none"


def trained(
    name: str,
    bleu: float,
    training: float | None,
    parameters: int | None,
    test_set: str = "t",
    signature: str = SIGNATURE,
) -> Run:
    return Run(
        name=name,
        folder=Path("runs", name),
        model="rnn",
        bleu=bleu,
        training=training,
        parameters=parameters,
        test_set=test_set,
        signature=signature,
    )


RUNS = [
    trained("small", 24.0, 15_500, 1_900_000),
    trained("beaten", 38.0, 6_300, 3_400_000),
    trained("good", 41.0, 12_100, 2_400_000),
    trained("large", 41.9, 1_500, 44_000_000),
    trained("unknown", 39.0, 5_100, None),
    Run(name="dead", folder=Path("runs/dead"), missing="the run has not ended"),
]


def front_of(points: NDArray[np.float64]) -> list[bool]:
    front = pareto_front(dict(enumerate(points.tolist())))
    return [index in front for index in range(len(points))]


def test_the_front_is_what_nothing_beats() -> None:
    points = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [0.0, 9.0]])
    assert front_of(points) == [True, True, True, False, True, True]
    assert front_of(points * (1, -1)) == [True] + [False] * 5


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_that_of_the_definition(seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 5, size=(40, 3)).astype(float)
    expected = [not any((q >= p).all() and (q > p).any() for q in points) for p in points]
    assert front_of(points) == expected
    assert 0 < sum(expected) < 40


def test_runs_are_ordered_and_the_best_are_starred() -> None:
    comparison = compare_runs(RUNS)
    assert [run.name for run in comparison.runs] == ["large", "good", "unknown", "beaten", "small", "dead"]
    assert [run.number for run in comparison.runs] == [1, 2, 3, 4, 5, 6]
    assert [run.name for run in comparison.runs if run.pareto] == ["large", "good", "small"]
    assert comparison.warnings == [
        "not in the picture, because speed while training or parameters are missing: unknown"
    ]


def test_the_table_has_the_metrics_that_any_run_has(capsys: pytest.CaptureFixture[str]) -> None:
    print_comparison(compare_runs(RUNS))
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.replace("┃", "│").strip("│").split("│")] for line in lines]
    assert rows[2] == ["no.", "run", "model", "BLEU", "training, tokens/s", "parameters"]
    assert rows[5] == ["2*", "good", "rnn", "41.0", "12,100", "2,400,000"]
    assert lines[-1] == "no scores: dead: the run has not ended"


def test_speed_is_the_kind_that_more_runs_have() -> None:
    speeds = (("a", 1.0, 9.0), ("b", 2.0, 8.0))
    evaluated = [Run(name=n, folder=Path(n), bleu=b, translating=s, parameters=7) for n, b, s in speeds]
    comparison = compare_runs([*evaluated, trained("c", 3.0, 99.0, 7)])
    assert list(comparison.objectives) == ["BLEU", "tokens/s, translating", "parameters"]
    assert [run.pareto for run in comparison.runs] == [False, True, True]  # c has no speed while translating


@pytest.mark.parametrize("key", ["test_set", "signature"])
def test_scores_that_cannot_be_compared_are_said_to_be(key: str) -> None:
    (warning,) = compare_runs([trained("a", 1.0, 1, 1), trained("b", 2.0, 1, 1, **{key: "other"})]).warnings
    assert "must not be compared" in warning
    assert "other" in warning


def test_training_and_evaluation_may_have_the_same_test_set() -> None:
    evaluated = Run(
        name="b", folder=Path("b"), bleu=2.0, translating=1.0, parameters=1, test_set="t.en, t.de", signature=SIGNATURE
    )
    first, second = compare_runs([trained("a", 1.0, None, 1), evaluated]).warnings
    assert "(t; t.en, t.de): compare their scores only if that is the same text" in first
    assert second.startswith("not in the picture")


def test_everything_is_written(tmp_path: Path) -> None:
    assert write_comparison(compare_runs(RUNS), tmp_path) == ["results.csv", "pareto.png"]
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["large", "good", "unknown", "beaten", "small", "dead"]
    assert [row["pareto"] for row in rows] == ["True", "True", "False", "False", "True", "False"]
    assert rows[-1]["missing"] == "the run has not ended"
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "pareto.png"}


def test_one_point_is_no_picture(tmp_path: Path) -> None:
    assert write_comparison(compare_runs([RUNS[0], RUNS[4]]), tmp_path) == ["results.csv"]
