"""From a run through its evaluation to a comparison and a model card, by the commands that users type."""

import csv
import json
import shlex
from pathlib import Path

import pytest

from tests.support.commands import SMALL, run


@pytest.fixture(scope="module")
def evaluated(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report's folder of the run."""
    folder = tmp_path_factory.mktemp("evaluation")
    done = run(
        "evaluate.py",
        f"ckpt={trained / 'checkpoints' / 'best.ckpt'}",
        f"hydra.run.dir={folder}",
        f"cache_dir={trained.parent / 'cache'}",
        "search.max_length_factor=1",
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_and_its_evaluation_are_compared(trained: Path, evaluated: Path, tmp_path: Path) -> None:
    done = run("compare", f"runs=[{trained},{evaluated},{tmp_path / 'none'}]", f"hydra.run.dir={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    assert "no scores: " in done.stdout
    assert "there is no such folder" in done.stdout
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = [float(row["bleu"]) for row in rows if row["bleu"]]
    assert len(scores) == 2
    assert scores[0] == pytest.approx(scores[1])  # the run's last act was the same search on the same text
    assert {row["signature"] for row in rows[:2]} == {rows[0]["signature"]}


@pytest.mark.day
def test_runs_without_a_test_are_compared_by_their_best_validations(tmp_path: Path) -> None:
    steps = ("trainer.max_steps=6", "trainer.val_check_interval=2", "monitor=val/loss", "test=false")
    folders = (f"hydra.sweep.dir={tmp_path / 'sweep'}", f"cache_dir={tmp_path / 'cache'}")
    done = run("train.py", "-m", *SMALL, *steps, "seed=1,2", *folders)
    assert done.returncode == 0, done.stderr
    _, *printed = shlex.split(done.stdout.partition("next: ")[2])
    compared = run(*printed, f"hydra.run.dir={tmp_path / 'out'}")
    assert compared.returncode == 0, compared.stderr
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        shown = sorted(float(row["chrf"]) for row in csv.DictReader(file))
    best = []
    for metrics in tmp_path.glob("sweep/*/metrics.csv"):
        with metrics.open(newline="") as file:
            validations = [row for row in csv.DictReader(file) if row["val/loss"]]
        assert len(validations) == 3
        best.append(float(min(validations, key=lambda row: float(row["val/loss"]))["val/chrf"]))
    assert shown == pytest.approx(sorted(best))


@pytest.mark.day
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["runs=/nowhere/*"], "runs: nothing matches '/nowhere/*'"),
        (["runs=[/nowhere/a]"], "no run has scores (/nowhere/a: there is no such folder)"),
        ([], "runs is required"),
        (["runs=[a]", "spilt=val"], "did you mean 'split'?"),
    ],
)
def test_a_mistake_is_answered(options: list[str], message: str, tmp_path: Path) -> None:
    done = run("compare", *options, f"hydra.run.dir={tmp_path}")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.day
def test_the_scores_of_an_evaluation_are_in_the_model_card(trained: Path, evaluated: Path, tmp_path: Path) -> None:
    checkpoints, report = trained / "checkpoints", evaluated / "report.json"
    common = [f"out={tmp_path / 'bundle'}", f"hydra.run.dir={tmp_path}"]
    done = run("export.py", f"ckpt={checkpoints / 'last.ckpt'}", f"report={report}", *common)
    assert done.returncode == 2
    assert "evaluate that checkpoint first" in done.stderr
    done = run("export.py", f"ckpt={checkpoints / 'best.ckpt'}", f"report={report}", *common)
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "bundle" / "README.md").read_text()
    score = json.loads(report.read_text())["systems"][0]["scores"]["chrf"]
    assert f"| chrf | {score['value']:.3f} | {score['low']:.3f} to {score['high']:.3f} |" in card
