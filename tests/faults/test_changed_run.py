"""Resuming with a changed config: changes that do not fit the checkpoint are refused, others applied and logged."""

import csv
import logging
from pathlib import Path

import pytest
import torch

from softsearch.app.config.composition import composed
from softsearch.app.train.train import train
from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import SMALL
from tests.support.written import save_unchecked

CONSTANT = ("scheduler=constant", "scheduler.warmup_steps=1")


def run_again(folder: Path, *options: str) -> None:
    """Trains in ``folder / "run"``, from its last checkpoint if there is one."""
    places = (f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", "name=test")
    train(composed("train", *SMALL, *CONSTANT, "resume=auto", *places, *options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    run_again(folder, "trainer.max_steps=4")
    return folder


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("model.decoder.hidden_dim=24", "model.decoder.hidden_dim 16 -> 24"),
        ("model.decoder.cell.reset=before", "model.decoder.cell.reset after -> before"),
        ("data.train_size=290", "other data"),
        ("data.tgt_lang=fr", "other data"),
        ("tokenizer.vocab_size=110", "tokenizer.vocab_size 240 -> 110"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(folder: Path, option: str, told: str) -> None:
    """Fault: a run is resumed with another corpus, or with options that do not fit its weights.

    Effect: refused, with what differs.
    """
    with pytest.raises(CheckpointError, match=told):
        run_again(folder, option, "trainer.max_steps=8")


def test_moments_of_another_size_are_refused_before_fused_adam_reads_them(folder: Path) -> None:
    """Which would end the process, or make it hang."""
    path = folder / "run" / "checkpoints" / "last.ckpt"
    before = path.read_bytes()
    checkpoint = load_checkpoint(path)
    checkpoint["optimizer_states"][0]["state"][0]["exp_avg"] = torch.zeros(1)
    save_unchecked(checkpoint, path)
    with pytest.raises(CheckpointError, match=r"state\.0\.exp_avg is \(1,\), expected \(\d+, 16\).*resume=null"):
        run_again(folder, "trainer.max_steps=8")
    path.write_bytes(before)


def test_another_rate_is_used_and_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fault: a run is resumed with other options that fit its weights.

    Effect: the changes are logged and take effect.
    """
    with caplog.at_level(logging.INFO):
        run_again(folder, "optimizer.lr=0.0005", "trainer.max_steps=8")
    assert "optimizer.lr 0.006 -> 0.0005" in caplog.text
    assert "trainer.max_steps 4 -> 8" in caplog.text
    with (folder / "run" / "metrics.csv").open(newline="") as file:
        rates = {int(row["step"]): float(row["lr"]) for row in csv.DictReader(file) if row["lr"]}
    assert {step: rate for step, rate in rates.items() if step > 4} == pytest.approx({6: 0.0005, 8: 0.0005})
    assert all(rate == pytest.approx(0.006) for step, rate in rates.items() if step <= 4)
