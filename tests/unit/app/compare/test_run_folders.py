"""Run folders of each kind become rows, and what cannot become one says why."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.compare.run_folders import find_folders, read_runs
from softsearch.errors import ConfigError
from softsearch.evaluation.schema import write_report
from tests.unit.report.page.pages import whole_report

CONFIG = "name: rnnsearch\ndata: {_target_: a.b.Multi30k, variant: lc_tok, test_set: t2016, root: /secret}\n"


def trained(folder: Path, config: str = CONFIG, **changed: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {
        "test/bleu": 38.2,
        "test/chrf": 63.7,
        "train/tokens_per_second": 6344.0,
        "model/parameters": 3_400_000,
        "signatures": {"test/bleu": "nrefs:1|bs:1000|seed:12345|tok:none"},
    }
    (folder / "metrics.json").write_text(json.dumps(figures | changed))
    (folder / "config.yaml").write_text(config)
    return folder


def test_a_trained_run(tmp_path: Path) -> None:
    (run,) = read_runs([trained(tmp_path / "a")], "test")
    assert asdict(run) == {
        "number": 0,
        "pareto": False,
        "name": "a",
        "folder": tmp_path / "a",
        "model": "rnnsearch",
        "bleu": 38.2,
        "chrf": 63.7,
        "ter": None,
        "translating": None,
        "training": 6344.0,
        "parameters": 3_400_000,
        "size_bytes": None,
        "test_set": "Multi30k t2016 lc_tok test",
        "signature": "nrefs:1|tok:none",
        "missing": "",
    }


def test_each_system_of_an_evaluation(tmp_path: Path) -> None:
    write_report(whole_report(), trained(tmp_path))  # it writes metrics.json too
    first, second = read_runs([tmp_path], "test")
    assert [first.name, second.name] == ["rnn", "tiny"]
    assert (first.bleu, first.translating, first.size_bytes) == (38.2, 1012.0, 13_900_000)
    assert (first.test_set, first.training) == ("test <2016>", None)


def test_the_trials_of_a_sweep(tmp_path: Path) -> None:
    trained(tmp_path / "trials" / "0000")
    failed = {"trial": 1, "state": "failed", "folder": "trials/0001", "error": "exit code 1\nerror: no memory"}
    trials = [{"trial": 0, "state": "complete", "folder": "trials/0000", "error": None}, failed]
    waiting = {"trial": 2, "state": "waiting", "folder": None, "error": None}
    (tmp_path / "results.json").write_text(json.dumps([*trials, waiting]))
    runs = read_runs([tmp_path], "test")
    assert [run.name for run in runs] == ["trials/0000", "trials/0001", "trial 2"]
    assert [run.missing for run in runs] == ["", "trial failed: error: no memory", "trial waiting"]


def test_a_folder_of_runs(tmp_path: Path) -> None:
    for name in ("0_a", "1_b"):
        trained(tmp_path / "sweep" / name)
    assert [run.name for run in read_runs([tmp_path / "sweep"], "test")] == ["0_a", "1_b"]


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    folders = [trained(tmp_path / place) for place in ("x/a", "y/a")]
    assert [run.name for run in read_runs(folders, "test")] == ["x/a", "y/a"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "it has neither report.json nor metrics.json"),
        ({"metrics.csv": "step\n"}, "the run has not ended: it has no metrics.json"),
        ({"metrics.json": "{"}, "its files cannot be read: JSONDecodeError"),
        ({"metrics.json": "[]"}, "metrics.json has no test/bleu, but no BLEU; set split"),
        ({"metrics.json": '{"val/bleu": 1}'}, "metrics.json has no test/bleu, but val/bleu; set split"),
        ({"metrics.json": '{"test/bleu": NaN}'}, "metrics.json: test/bleu is nan"),
        ({"metrics.json": '{"test/bleu": 1}', "config.yaml": "a: ["}, "its files cannot be read: "),
        ({"metrics.json": '{"test/bleu": 1}', "config.yaml": "- a"}, "its files cannot be read: AttributeError"),
        ({"metrics.json": f'{{"test/bleu": {"9" * 400}}}'}, "its files cannot be read: OverflowError"),
        ({"metrics.json": '{"test/bleu": 1e300}'}, "its files cannot be read: ValueError: 1e+300 is out of range"),
        (
            {"metrics.json": f'{{"test/bleu": 1, "model/parameters": {"9" * 400}}}'},
            "its files cannot be read: Overflow",
        ),
        ({"metrics.json": "[" * 100_000}, "its files cannot be read: "),
        ({"report.json": '{"systems": [{}]}'}, "its files cannot be read: KeyError: 'scores'"),
        ({"results.json": '[{"trial": 1}]'}, "its files cannot be read: KeyError: 'folder'"),
        ({"results.json": "[]"}, "it lists neither systems nor trials"),
        ({"metrics.json": '{"test/bleu": 1, "test/chrf": "x"}'}, "its files cannot be read: ValueError"),
    ],
)
def test_a_folder_without_figures_says_why(files: dict[str, str], reason: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (run,) = read_runs([tmp_path], "test")
    assert run.bleu is None
    assert run.missing.startswith(reason)


def test_a_folder_that_is_not_there_does_not_stop_the_others(tmp_path: Path) -> None:
    runs = read_runs([tmp_path / "none", trained(tmp_path / "a")], "test")
    assert [run.missing for run in runs] == ["there is no such folder", ""]


def test_paths_and_globs_are_found_once(tmp_path: Path) -> None:
    a, b = trained(tmp_path / "a"), trained(tmp_path / "b")
    (tmp_path / "notes.txt").write_text("")
    assert find_folders(tmp_path / "*") == [a, b]
    assert find_folders([b, tmp_path / "*"]) == [b, a]
    assert find_folders([a, tmp_path / "missing"]) == [a, tmp_path / "missing"]


def test_files_are_no_folders_of_runs(tmp_path: Path) -> None:
    for name in ("notes.txt", "more.txt"):
        (tmp_path / name).write_text("")
    a = trained(tmp_path / "a")
    for runs, message in (("notes.txt", "is a file"), ("*.txt", "matches files only")):
        for given in (tmp_path / runs, [a, tmp_path / runs]):
            with pytest.raises(ConfigError, match=f"runs: .* {message}; name folders of runs"):
                find_folders(given)


def test_a_folder_named_like_a_pattern(tmp_path: Path) -> None:
    folder = trained(tmp_path / "[red]")
    assert find_folders(folder) == [folder]


@pytest.mark.parametrize("runs", [[], [Path("/nowhere/*")], Path("/nowhere/*")])
def test_what_names_no_folder_is_refused(runs: Path | list[Path]) -> None:
    with pytest.raises(ConfigError, match="runs"):
        find_folders(runs)
