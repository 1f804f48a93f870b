"""Folders of runs become rows, or say why they cannot; rows become a table, who is best at what, and files."""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import MetricFacts, write_report
from softsearch.extras.shared.pareto import pareto_front
from softsearch.extras.sweep.compare import compare_runs, print_comparison, write_comparison
from softsearch.extras.sweep.runs import Run, find_folders, read_runs
from tests.support.pages import trained_run, whole_report

SIGNATURE = "nrefs:1|tok:none"
FACTS = {"bleu": MetricFacts("BLEU")}


def run(name: str, bleu: float, training: float | None, parameters: int | None, **changed: Any) -> Run:
    values: dict[str, Any] = {
        "name": name,
        "folder": Path("runs", name),
        "model": "rnn",
        "scores": {"bleu": bleu},
        "facts": FACTS,
        "training": training,
        "parameters": parameters,
        "test_set": "t",
        "signatures": {"bleu": SIGNATURE},
    }
    return Run(**values | changed)


RUNS = [
    run("small", 24.0, 15_500, 1_900_000),
    run("beaten", 38.0, 6_300, 3_400_000),
    run("good", 41.0, 12_100, 2_400_000),
    run("large", 41.9, 1_500, 44_000_000),
    run("unknown", 39.0, 5_100, None),
    Run(name="dead", folder=Path("runs/dead"), missing="the run has not ended"),
]


def test_the_table_is_written_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_comparison(compare_runs([*RUNS, run("other_text", 9.0, 1.0, 1, test_set="u")]), tmp_path / "t.md")
    printed = capsys.readouterr().out
    assert f"table: {tmp_path / 't.md'}" in printed
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert rows[1] == ["---:", *["---"] * 2, *["---:"] * 3]
    assert rows[2] == ["1\\*", "large", "rnn", "**41.9**", "1,500", "44,000,000"]
    assert rows[-1] == ["6\\*", "other_text", "rnn", "9.0", "1", "1"]
    for row in rows[2:7]:
        assert all(cell.replace("\\", "").strip("*") in printed for cell in row)


def test_runs_that_differ_in_their_seed_have_a_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, bleu in ((1, 40.0), (2, 42.0)):
        folder = tmp_path / f"run-{seed}"
        folder.mkdir()
        (folder / "metrics.json").write_text(
            json.dumps({"test/bleu": bleu, "metrics": {"bleu": asdict(FACTS["bleu"])}})
        )
        (folder / "config.yaml").write_text(f"model: {{}}\nseed: {seed}\nrun_dir: {folder}\n")
    print_comparison(compare_runs(read_runs([tmp_path], "test")), tmp_path / "t.tex")
    assert "mean and standard deviation over seeds" in " ".join(capsys.readouterr().out.split())
    assert "run & 2 & 41.00 $\\pm$ 1.41 \\\\\n" in (tmp_path / "t.tex").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_that_of_the_definition(seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 5, size=(40, 3)).astype(float)
    expected = [not any((q >= p).all() and (q > p).any() for q in points) for p in points]
    front = pareto_front(dict(enumerate(points.tolist())))
    assert [index in front for index in range(len(points))] == expected
    assert 0 < sum(expected) < 40


def test_runs_are_ordered_and_the_best_are_starred() -> None:
    comparison = compare_runs(RUNS)
    assert [run.name for run in comparison.runs] == ["large", "good", "unknown", "beaten", "small", "dead"]
    assert [run.number for run in comparison.runs] == [1, 2, 3, 4, 5, 6]
    assert [run.name for run in comparison.runs if run.pareto] == ["large", "good", "small"]
    assert comparison.warnings == [
        "not in the figure, because BLEU, speed while training or parameters are missing: unknown"
    ]


def test_the_table_has_the_metrics_that_any_run_has(capsys: pytest.CaptureFixture[str]) -> None:
    print_comparison(compare_runs(RUNS))
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.replace("┃", "│").strip("│").split("│")] for line in lines]
    assert rows[2] == ["no.", "run", "model", "BLEU", "training, tokens/s", "parameters"]
    assert rows[5] == ["2*", "good", "rnn", "41.0", "12,100", "2,400,000"]
    assert lines[-1] == "no scores: dead: the run has not ended"


def test_speed_is_the_kind_that_more_runs_have() -> None:
    evaluated = [run(n, b, None, 7, translating=s) for n, b, s in (("a", 1.0, 9.0), ("b", 2.0, 8.0))]
    comparison = compare_runs([*evaluated, run("c", 3.0, 99.0, 7)])
    assert list(comparison.objectives) == ["BLEU", "tokens/s, translating", "parameters"]
    assert [run.pareto for run in comparison.runs] == [False, True, True]  # c has no speed while translating


def test_different_signatures_are_a_warning() -> None:
    (warning,) = compare_runs([run("a", 1.0, 1, 1), run("b", 2.0, 1, 1, signatures={"bleu": "other"})]).warnings
    assert warning == "the BLEU signatures differ, so the scores are not comparable: nrefs:1|tok:none; other"


def test_runs_of_different_languages_are_a_warning() -> None:
    runs = [
        run("a", 1.0, 1, 1, languages=("en", "de")),
        run("b", 2.0, 1, 1, languages=("en", "fr")),
        run("c", 3.0, 1, 1),
    ]
    (warning,) = compare_runs(runs).warnings  # c, the best, is of an older version and has no languages
    assert warning == "the text of b is en-fr, but that of a is en-de; scores would be meaningless"
    assert compare_runs(runs[1:]).warnings == []


def test_runs_of_different_test_sets_are_in_tables_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    others = [run("c", 90.0, 1, 1, test_set="easy"), run("a", 1.0, 1, 1), run("b", 2.0, 1, 1)]
    comparison = compare_runs(others)
    assert [(r.name, r.pareto) for r in comparison.runs] == [("b", True), ("a", False), ("c", True)]
    assert list(comparison.points) == [1, 2]
    assert comparison.warnings == []
    print_comparison(comparison)
    out = capsys.readouterr().out
    assert out.index("best BLEU") < out.index("│ b ") < out.index("easy: best BLEU") < out.index("│ c ")


def test_any_metric_ranks() -> None:
    facts = FACTS | {"edits": MetricFacts("edits a word", higher_is_better=False, percent=True)}
    runs = [
        run(name, bleu, 5.0, 3, scores={"bleu": bleu, "edits": edits}, facts=facts)
        for name, bleu, edits in (("a", 30.0, 0.5), ("b", 20.0, 0.25))
    ]
    runs += [run("c", 40.0, 5.0, 3), run("d", 1.0, 5.0, 3, scores={}, facts={}, missing="no test set")]
    assert [r.name for r in compare_runs(runs).runs] == ["c", "a", "b", "d"]
    comparison = compare_runs(runs, "edits")
    assert [r.name for r in comparison.runs] == ["b", "a", "c", "d"]
    assert comparison.objectives["edits a word"] == "minimize"
    assert [r.name for r in comparison.runs if r.pareto] == ["b"]
    assert "edits a word, speed while training or parameters are missing: c" in comparison.warnings[-1]
    with pytest.raises(ConfigError, match="rank_by is 'edit', which no run has; did you mean 'edits'"):
        compare_runs(runs, "edit")
    ratio = {"edits": MetricFacts("edits", higher_is_better=None)}
    with pytest.raises(ConfigError, match="rank_by is 'edits', which has no better direction; there are: "):
        compare_runs([replace(run, facts=run.facts | ratio) for run in runs], "edits")
    with pytest.raises(ConfigError, match=r"no run has scores \(runs/d: no test set\)"):
        compare_runs(runs[-1:])


def test_everything_is_written(tmp_path: Path) -> None:
    assert write_comparison(compare_runs(RUNS), tmp_path) == ["results.csv", "pareto.png"]
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["large", "good", "unknown", "beaten", "small", "dead"]
    assert [row["bleu"] for row in rows] == ["41.9", "41.0", "39.0", "38.0", "24.0", ""]
    assert [row["pareto"] for row in rows] == ["True", "True", "False", "False", "True", "False"]
    assert rows[-1]["missing"] == "the run has not ended"
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "pareto.png"}


def test_one_point_is_no_picture(tmp_path: Path) -> None:
    assert write_comparison(compare_runs([RUNS[0], RUNS[4]]), tmp_path) == ["results.csv"]


def test_a_trained_run(tmp_path: Path) -> None:
    (found,) = read_runs([trained_run(tmp_path / "a")], "test")
    assert found == Run(
        name="a",
        folder=tmp_path / "a",
        model="rnnsearch",
        scores={"bleu": 38.2, "chrf": 63.7},
        facts={"bleu": MetricFacts("BLEU"), "chrf": MetricFacts("chrF")},
        signatures={"bleu": "nrefs:1|tok:none", "chrf": ""},
        training=6344.0,
        parameters=3_400_000,
        test_set="t.en, t.de",
    )


def test_a_run_of_an_older_version(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"test/bleu": 3, "test/ter": 90, "test/loss": 2, "test/de/bleu": 4}')
    (found,) = read_runs([tmp_path], "test")
    assert found.scores == {"bleu": 3.0, "ter": 90.0}
    assert [(fact.title, fact.higher_is_better) for fact in found.facts.values()] == [("bleu", True), ("ter", False)]


def test_each_system_of_an_evaluation(tmp_path: Path) -> None:
    write_report(whole_report(), trained_run(tmp_path))  # it writes metrics.json too
    first, second = read_runs([tmp_path], "test")
    assert [first.name, second.name] == ["rnn", "tiny"]
    assert first.scores == {"bleu": 38.2, "exact_match": 0.065}
    assert first.facts["exact_match"].percent
    assert (first.translating, first.size_bytes) == (1012.0, 13_900_000)
    assert (first.test_set, first.training) == ("test <2016>", None)


def test_the_trials_of_a_sweep(tmp_path: Path) -> None:
    trained_run(tmp_path / "trials" / "0000")
    failed = {"trial": 1, "state": "failed", "folder": "trials/0001", "error": "exit code 1\nerror: no memory"}
    trials = [{"trial": 0, "state": "complete", "folder": "trials/0000", "error": None}, failed]
    waiting = {"trial": 2, "state": "waiting", "folder": None, "error": None}
    (tmp_path / "results.json").write_text(json.dumps([*trials, waiting]))
    runs = read_runs([tmp_path], "test")
    assert [r.name for r in runs] == ["trials/0000", "trials/0001", "trial 2"]
    assert [r.missing for r in runs] == ["", "trial failed: error: no memory", "trial waiting"]


def test_a_folder_of_runs(tmp_path: Path) -> None:
    for name in ("0_a", "1_b"):
        trained_run(tmp_path / "sweep" / name)
    assert [r.name for r in read_runs([tmp_path / "sweep"], "test")] == ["0_a", "1_b"]


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    folders = [trained_run(tmp_path / place) for place in ("x/a", "y/a")]
    assert [r.name for r in read_runs(folders, "test")] == ["x/a", "y/a"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "it has neither report.json nor metrics.json"),
        ({"metrics.csv": "step\n"}, "the run has not ended, or has no scores: it has no metrics.json"),
        ({"metrics.json": "{"}, "its files cannot be read: JSONDecodeError"),
        ({"metrics.json": "[]"}, "its files cannot be read: AttributeError"),
        ({"metrics.json": '{"val/bleu": 1}'}, "metrics.json has no scores for test, found val/bleu 1; set split"),
        ({"metrics.json": '{"test/bleu": NaN}'}, "metrics.json has no scores for test, found test/bleu nan; set split"),
        ({"metrics.json": '{"test/bleu": 1, "metrics": {"bleu": 1}}'}, "its files cannot be read: ValueError: metrics"),
        ({"metrics.json": f'{{"test/bleu": {"9" * 400}}}'}, "its files cannot be read: OverflowError"),
        ({"metrics.json": '{"test/bleu": 1e300}'}, "its files cannot be read: ValueError: 1e+300 is out of range"),
        (
            {"metrics.json": f'{{"test/bleu": 1, "model/parameters": {"9" * 400}}}'},
            "its files cannot be read: Overflow",
        ),
        ({"metrics.json": "[" * 100_000}, "its files cannot be read: "),
        ({"report.json": '{"systems": [{}]}'}, "its files cannot be read: KeyError: 'scores'"),
        ({"results.json": '[{"trial": 1}]'}, "its files cannot be read: KeyError: 'folder'"),
        ({"results.json": '{"name": "search_curve"}'}, "its results.json belongs to a claim (softsearch reproduce)"),
        ({"results.json": "[]"}, "it has neither systems nor trials"),
        ({"metrics.json": '{"test/bleu": 1, "test/chrf": "x"}'}, "its files cannot be read: ValueError"),
    ],
)
def test_a_folder_without_figures_says_why(files: dict[str, str], reason: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (found,) = read_runs([tmp_path], "test")
    assert found.scores == {}
    assert found.missing.startswith(reason)


def test_a_folder_that_is_not_there_does_not_stop_the_others(tmp_path: Path) -> None:
    runs = read_runs([tmp_path / "none", trained_run(tmp_path / "a")], "test")
    assert [r.missing for r in runs] == ["there is no such folder", ""]


def test_paths_and_globs_are_found_once(tmp_path: Path) -> None:
    a, b = trained_run(tmp_path / "a"), trained_run(tmp_path / "b")
    (tmp_path / "notes.txt").write_text("")
    assert find_folders(tmp_path / "*") == [a, b]
    assert find_folders([b, tmp_path / "*"]) == [b, a]
    assert find_folders([a, tmp_path / "missing"]) == [a, tmp_path / "missing"]


def test_files_are_no_folders_of_runs(tmp_path: Path) -> None:
    for name in ("notes.txt", "more.txt"):
        (tmp_path / name).write_text("")
    a = trained_run(tmp_path / "a")
    for runs, message in (("notes.txt", "is a file"), ("*.txt", "matches only files")):
        for given in (tmp_path / runs, [a, tmp_path / runs]):
            with pytest.raises(ConfigError, match=f"runs: .* {message}; name folders of runs"):
                find_folders(given)


def test_a_folder_named_like_a_pattern(tmp_path: Path) -> None:
    folder = trained_run(tmp_path / "[red]")
    assert find_folders(folder) == [folder]


@pytest.mark.parametrize("runs", [[], [Path("/nowhere/*")], Path("/nowhere/*")])
def test_what_names_no_folder_is_refused(runs: Path | list[Path]) -> None:
    with pytest.raises(ConfigError, match="runs"):
        find_folders(runs)
