"""Names of folders, runs and studies are printed as they are, whatever Rich would read in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.app import prepare as prepare_command
from softsearch.app.compare.compare import compare
from softsearch.app.config.options import Compare
from softsearch.app.results import report, show_report
from softsearch.app.sweep.results import report as report_sweep
from softsearch.app.sweep.study import open_study
from softsearch.app.sweep.sweep import Worker
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.preparation.prepare import prepare
from softsearch.evaluation.metrics import Scores
from softsearch.text.tokenizer import TokenizerTrainer
from tests.unit.app.compare.test_run_folders import trained
from tests.unit.app.stand_in import install, plan
from tests.unit.data.pairs import write_pair
from tests.unit.report.page.pages import whole_report

NAME = r"[red]a[/b]:ok:\[i]"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / NAME  # two folders: a tag that closes has a slash
    place.mkdir(parents=True)
    return place


def test_compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "y").mkdir()
    runs = [trained(folder / "x"), trained(folder.parent / "z"), folder / "y"]
    compare(Compare(runs=runs, split="test", run_dir=folder / "out"))
    printed = capsys.readouterr().out
    assert f" {NAME.partition('/')[2]}/x " in printed
    assert f"written to {folder}/out" in printed
    assert f"no scores: {NAME.partition('/')[2]}/y" in printed


def test_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(folder, "test", [], Scores({NAME: 1.0}, {"bleu": NAME}), {})
    printed = capsys.readouterr().out
    assert f" test/{NAME} " in printed
    assert f"bleu: {NAME}" in printed
    assert f"metrics: {folder}/metrics.json" in printed


def test_evaluation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = whole_report()
    named = [replace(system, name=f"{NAME}{system.name}") for system in whole.systems]
    comparison = replace(whole.comparisons[0], system=NAME)
    show_report(replace(whole, systems=named, comparisons=[comparison], warnings=[NAME]), folder)
    printed = capsys.readouterr().out
    assert f" {NAME}rnn " in printed
    assert f"searches with {NAME}" in printed
    assert f" {NAME} " in printed
    assert f"warning: {NAME}" in printed
    assert f"page: {folder}/report.html" in printed


def test_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    install(monkeypatch, tmp_path)
    tried = plan(tmp_path, "good", trials=1, study=NAME)
    with open_study(tried) as study:
        Worker(study, tried).work()
        report_sweep(study, tried)
    assert f"{NAME}: 1 trials" in capsys.readouterr().out


def test_prepare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = NAME.partition("/")[2]
    source = Parallel(train=write_pair(folder, f"[i]{name}", 20), val=write_pair(folder, "val", 3))
    prepared = prepare(source, TokenizerTrainer(kind="char", vocab_size=60), folder / "cache")
    prepare_command._show(prepared)
    printed = capsys.readouterr().out
    assert f" [i]{name}.en | [i]{name}.de " in printed
    assert f"prepared: {prepared.folder}" in printed
