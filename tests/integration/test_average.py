"""Averages of checkpoints and of weights, by the commands that users type."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import SMALL, run

pytestmark = pytest.mark.day


@pytest.fixture(scope="module")
def averaged(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, with an average of its two checkpoints."""
    copy = shutil.copytree(trained, tmp_path_factory.mktemp("average") / "run")
    done = run("average", f"run={copy}", "last=2", f"hydra.run.dir={copy.parent}")
    assert done.returncode == 0, done.stderr
    assert "the mean of step-4.ckpt, step-8.ckpt" in done.stdout
    return copy


def test_the_average_of_a_run(averaged: Path) -> None:
    mean, first, second = (
        load_checkpoint(averaged / "checkpoints" / f"{name}.ckpt") for name in ("average", "step-4", "step-8")
    )
    assert (mean["global_step"], mean["averaged"]) == (8, 2)
    for name, weight in mean["state_dict"].items():
        expected = (first["state_dict"][name].double() + second["state_dict"][name].double()) / 2
        torch.testing.assert_close(weight.double(), expected, rtol=1e-6, atol=1e-8)


def test_named_checkpoints_are_averaged(averaged: Path, tmp_path: Path) -> None:
    names = ",".join(str(averaged / "checkpoints" / name) for name in ("step-4.ckpt", "step-8.ckpt"))
    done = run("average", f"ckpt=[{names}]", f"out={tmp_path / 'mean.ckpt'}", f"hydra.run.dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    ours, theirs = (load_checkpoint(p) for p in (tmp_path / "mean.ckpt", averaged / "checkpoints" / "average.ckpt"))
    assert all(torch.equal(weight, theirs["state_dict"][name]) for name, weight in ours["state_dict"].items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["last=2"], "expected exactly one of them; set run=RUN"),
        (["run={run}", "last=9"], "found step-4.ckpt, step-8.ckpt; ask for at most 2"),
        (["ckpt=[a.ckpt]"], "out=PATH"),
    ],
)
def test_a_mistake_is_answered(averaged: Path, tmp_path: Path, options: list[str], message: str) -> None:
    done = run("average", *(o.format(run=averaged) for o in options), f"hydra.run.dir={tmp_path}")
    assert done.returncode == (1 if "found" in message else 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_evaluation_takes_the_file_or_averages_itself(averaged: Path, trained: Path, tmp_path: Path) -> None:
    folder = averaged / "checkpoints"
    losses = []
    for name, *options in (
        ("file", f"ckpt={folder / 'average.ckpt'}"),
        ("option", f"ckpt={folder / 'last.ckpt'}", "average=2"),
    ):
        done = run("evaluate.py", *options, "search=greedy", "search.max_length_factor=1",
                   f"cache_dir={trained.parent / 'cache'}", f"hydra.run.dir={tmp_path / name}")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "step 8, the mean of 2 checkpoints" in done.stdout
        losses.append(json.loads((tmp_path / name / "metrics.json").read_text())["test/loss"])
    assert losses[0] == losses[1]


@pytest.mark.nightly
def test_export_averages(averaged: Path, tmp_path: Path) -> None:
    done = run("export.py", f"ckpt={averaged / 'checkpoints' / 'last.ckpt'}", "average=2", f"out={tmp_path / 'bundle'}",
               f"hydra.run.dir={tmp_path}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    training = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["training"]
    assert (training["averaged"], training["results"], training["steps"]) == (2, {}, 8)


def test_a_run_with_a_moving_average_tests_what_evaluation_tests(trained: Path, tmp_path: Path) -> None:
    cache = f"cache_dir={trained.parent / 'cache'}"
    done = run(
        "train.py", *SMALL, "callbacks=ema", "callbacks.ema.decay=0.5", cache, f"hydra.run.dir={tmp_path / 'run'}"
    )
    assert done.returncode == 0, done.stderr
    best = tmp_path / "run" / "checkpoints" / "best.ckpt"
    saved = load_checkpoint(best)
    assert any(not torch.equal(w, saved["state_dict"][name]) for name, w in saved["current_model_state"].items())
    done = run(
        "evaluate.py", f"ckpt={best}", "search.max_length_factor=1", cache, f"hydra.run.dir={tmp_path / 'evaluate'}"
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("evaluate", "run"))
    assert ours["test/loss"] == pytest.approx(theirs["test/loss"], rel=1e-5)
    assert ours["test/bleu"] == theirs["test/bleu"]
