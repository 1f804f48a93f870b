"""Names of folders, runs and studies are printed as they are, whatever Rich or a terminal would read in them."""

import logging
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from softsearch.app import prepare as prepare_command
from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.validation import build
from softsearch.app.results import print_test, show_report
from softsearch.app.train.model import describe_model
from softsearch.app.train.parts import build_parts
from softsearch.app.train.summary import print_end
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import printable
from softsearch.evaluation.metrics import Scores
from softsearch.extras.sweep.compare import compare
from softsearch.extras.sweep.options import Compare
from softsearch.extras.sweep.results import report as report_sweep
from softsearch.extras.sweep.study import open_study
from softsearch.extras.sweep.sweep import Worker
from softsearch.text.tokenizer import TokenizerTrainer
from tests.support.pages import trained_run, whole_report
from tests.support.pairs import write_pair
from tests.support.stand_in import install, plan

NAME = "[red]a[/b]:ok:\\[i]\x1b[2J"  # and a sequence that clears the screen
SHOWN = printable(NAME)


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
    runs = [trained_run(folder / "x"), trained_run(folder.parent / "z"), folder / "y"]
    compare(Compare(runs=runs, split="test", rank_by=None, table=None, run_dir=folder / "out"))
    printed = capsys.readouterr().out
    assert f" {SHOWN.partition('/')[2]}/x " in printed
    assert f"written to {printable(str(folder))}/out" in printed
    assert f"no scores: {SHOWN.partition('/')[2]}/y" in printed


def test_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fault: escape sequences in the names of folders and runs. Effect: printed as plain text."""
    print_test(folder, "test", Scores({NAME: 1.0}, {"bleu": NAME}, {}), {})
    printed = capsys.readouterr().out
    assert f" test/{SHOWN} " in printed
    assert f"bleu: {SHOWN}" in printed
    assert f"metrics: {printable(str(folder))}/metrics.json" in printed


def test_evaluation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = whole_report()
    named = [replace(system, name=f"{NAME}{system.name}") for system in whole.systems]
    comparison = replace(whole.comparisons[0], system=NAME)
    show_report(replace(whole, systems=named, comparisons=[comparison], warnings=[NAME]), folder)
    printed = capsys.readouterr().out
    assert f" {SHOWN}rnn " in printed
    assert f"searches with {SHOWN}" in printed
    assert f" {SHOWN} " in printed
    assert f"warning: {SHOWN}" in printed
    assert f"page: {printable(str(folder))}/report.html" in printed


def test_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    install(monkeypatch, tmp_path)
    tried = plan(tmp_path, "good", trials=1, study=NAME)
    with open_study(tried) as study:
        Worker(study, tried).work()
        report_sweep(study, tried)
    assert f"{SHOWN}: 1 trials" in capsys.readouterr().out


def test_prepare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = NAME.partition("/")[2]
    source = Parallel(train=write_pair(folder, f"[i]{name}", 20), val=write_pair(folder, "val", 3))
    prepared = prepare(source, TokenizerTrainer(kind="char", vocab_size=60), folder / "cache")
    prepare_command._show(prepared)
    printed = capsys.readouterr().out
    assert f" [i]{printable(name)}.en | [i]{printable(name)}.de " in printed
    assert f"prepared: {printable(str(prepared.folder))}" in printed


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    (settings,) = OmegaConf.load(CONFIGS / "hydra" / "job_logging" / "plain.yaml").formatters.values()
    formatter = build(OmegaConf.create({"_target_": settings["()"], "fmt": settings["fmt"]}))
    logging.getLogger("some").warning("read %s\nand on", NAME)
    assert formatter.format(caplog.records[0]).endswith(f" read {SHOWN}\nand on")


@pytest.mark.parametrize("words", [(), ("debug=fast",), ("model.cell._target_=somebody.Cell",)])
def test_suggested_commands_can_be_typed(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "0_gru_seed=1"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "best.ckpt").touch()
    config = composed("train", "model=gru", "name=x", *words, f"run_dir='{run}'", with_hydra=True)
    monkeypatch.setattr(HydraConfig.instance(), "cfg", config)
    parts = build_parts(composed("train", "model=gru", "data=spellout", "name=x", f"run_dir='{run}'"))
    parts = replace(parts, record={"model": OmegaConf.to_container(config.model)})
    print_end(parts, describe_model(parts.options))
    printed = capsys.readouterr().out.splitlines()
    if "debug=fast" in words:  # its model is not for use
        assert len(printed) == 1
        return
    trust = ["somebody.*"] if words else []
    evaluate, export, single = (shlex.split(line) for line in printed[2:5])
    for _, command, *typed in (evaluate, export, single):
        assert composed(command, *typed).ckpt == str(run)
        assert composed(command, *typed).trust == trust
