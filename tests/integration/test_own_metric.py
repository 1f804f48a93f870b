"""A metric from a package outside the tree: it stops training, chooses the best checkpoint, and is in all reports."""

import csv
import json
from pathlib import Path

import pytest

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import SMALL, run

pytestmark = pytest.mark.day

MODULE = '''
from softsearch.evaluation.metrics import Metric


class LengthGap(Metric):
    """By how much the lengths of translations miss those of their references, as a share of the latter."""

    title, higher_is_better, percent, limits = "length gap", False, True, (0.0, 9.0)

    def __init__(self, *, words: bool = True) -> None:
        self.words, self.signature = words, f"unit:{'word' if words else 'character'}"

    def statistics(self, hypotheses, references):
        size = (lambda line: len(line.split())) if self.words else len
        return [(abs(size(h) - size(r)), size(r)) for h, r in zip(hypotheses, references)]

    def score(self, sums):
        return sums[0] / sums[1]
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and its config, a run by it, and an evaluation of the run."""
    home = tmp_path_factory.mktemp("own_metric")
    (home / "configs" / "metric").mkdir(parents=True)
    (home / "mypackage.py").write_text(MODULE)
    (home / "configs" / "metric" / "gap.yaml").write_text("gap: {_target_: mypackage.LengthGap, words: true}\n")
    checkpoints = ",".join(str(home / "run" / "checkpoints" / name) for name in ("best.ckpt", "step-2.ckpt"))
    for script, *options in (
        ("train.py", *SMALL, "trainer.val_check_interval=2", "callbacks.early_stopping.patience=1",
         "+callbacks.early_stopping.min_delta=99", f"hydra.run.dir={home / 'run'}"),
        ("evaluate.py", f"ckpt=[{checkpoints}]", "search.max_length_factor=1", "curve=[greedy,2]",
         f"hydra.run.dir={home / 'report'}"),
    ):  # fmt: skip
        common = ("metric=[gap,chrf]", f"cache_dir={home / 'cache'}", f"--config-dir={home / 'configs'}")
        done = run(script, *options, *common, PYTHONPATH=str(home))
        assert done.returncode == 0, done.stderr
        (home / f"{script}.txt").write_text(done.stdout)
    return home


def test_training_follows_it(home: Path) -> None:
    rows = list(csv.DictReader((home / "run" / "metrics.csv").read_text().splitlines()))
    gaps = {int(row["step"]): float(row["val/gap"]) for row in rows if row["val/gap"]}
    assert len(gaps) == 2  # of 4: early stopping watched it
    best = load_checkpoint(home / "run" / "checkpoints" / "best.ckpt")["global_step"]
    assert best == min(gaps, key=gaps.__getitem__)
    metrics = json.loads((home / "run" / "metrics.json").read_text())
    assert metrics["signatures"]["test/gap"] == "unit:word"
    assert [name for name in metrics if name.startswith("test/")] == ["test/gap", "test/chrf", "test/loss"]
    assert f"{100 * metrics['test/gap']:.2f} %" in (home / "train.py.txt").read_text()


def test_reports_show_it(home: Path) -> None:
    report = json.loads((home / "report" / "report.json").read_text())
    first, second = report["systems"]
    assert list(first["scores"])[:2] == ["gap", "chrf"]
    gap = first["scores"]["gap"]
    assert gap["low"] <= gap["value"] <= gap["high"]
    assert gap["signature"] == "unit:word|bs:1000|seed:12345"
    difference, _ = report["comparisons"]
    assert (difference["metric"], 0 < difference["p_value"] <= 1) == ("gap", True)
    assert difference["difference"] == pytest.approx(second["scores"]["gap"]["value"] - gap["value"])
    assert report["sentence_metric"] == "gap"
    page = (home / "report" / "report.html").read_text()
    for part in (
        '<option value="score-0">length gap of ',
        "For length gap, lower is better.",
        "length gap by source length",
    ):
        assert part in page
    shown = (home / "evaluate.py.txt").read_text()
    assert f"{100 * gap['value']:.2f} % ({100 * gap['low']:.2f} % to" in shown


def test_runs_are_ranked_by_it(home: Path) -> None:
    folders = f"runs=[{home / 'run'},{home / 'report'}]"
    done = run("compare", folders, f"hydra.run.dir={home / 'compare'}")  # without the package
    assert done.returncode == 0, done.stderr
    assert "best length gap first" in done.stdout
    rows = list(csv.DictReader((home / "compare" / "results.csv").read_text().splitlines()))
    gaps = [float(row["gap"]) for row in rows]
    assert gaps == sorted(gaps)
    assert {row["signature"] for row in rows} == {"unit:word"}
    ranked = run("compare", folders, "rank_by=chrf", f"hydra.run.dir={home / 'by_chrf'}")
    assert "best chrF first" in ranked.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["+metric.own._target_=mypackage.Nothing"], "metric.own._target_ is 'mypackage.Nothing', which cannot be"),
        (["+metric.own._target_=mypackage.LengthGap", "+metric.own.word=1"], "metric.own.word is not an option of"),
        (["+metric.own._target_=datetime.timedelta"], "metric.own is a timedelta, expected a subclass of softsearch"),
        (["+metric.loss._target_=mypackage.LengthGap"], "metric.loss: expected another name"),
        (["metric.bleu.tokenize=word"], "tokenize of BLEU is 'word', expected null or one of none"),
        (["metric=[]"], "metric is null, expected one of bleu, bleu_lc, chrf"),
        (["callbacks.best.monitor=val/ter"], "callbacks.best.monitor is 'val/ter', expected one of val/bleu, val/chrf"),
    ],
)
def test_mistakes_cost_no_data(home: Path, tmp_path: Path, options: list[str], message: str) -> None:
    folders = (f"hydra.run.dir={tmp_path}", f"cache_dir={tmp_path / 'cache'}")
    done = run("train.py", *SMALL, *options, *folders, PYTHONPATH=str(home))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "cache").exists()
