"""A run that goes on with other numbers of processes, in mid-epoch: ``batching.canonical``."""

import csv
from pathlib import Path

import pytest
import torch

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.processes import train_in_processes

pytestmark = [
    pytest.mark.day,
    pytest.mark.multiprocess,
    pytest.mark.skipif(torch.cuda.is_available(), reason="trainer=ddp takes the GPUs of this machine"),
]


def train(folder: Path, name: str, *options: str) -> str:
    """Trains on twelve batches for six canonical processes, two steps an epoch; returns what it printed."""
    done = train_in_processes(
        folder,
        name,
        "batching.sentences=10",
        "batching.canonical=6",
        "model.encoder.dropout=0.2",
        "scheduler=constant",
        "trainer.val_check_interval=1000",
        *options,
    )
    return done.stdout + done.stderr


def logged(folder: Path, name: str) -> list[float]:
    """What was logged of each step."""
    with (folder / "metrics.csv").open(newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row[name]]


def test_a_run_grows_and_shrinks_with_the_same_steps(tmp_path: Path) -> None:
    train(tmp_path, "whole", "trainer.devices=2", "trainer.max_steps=9")
    for devices, steps in ((2, 3), (1, 5), (3, 9)):
        printed = train(
            tmp_path, "cut", f"trainer.devices={devices}", f"trainer.max_steps={steps}", "resume=auto", "test=false"
        )
    assert "6 batches of" in printed
    norms = [logged(tmp_path / name, "grad_norm/total") for name in ("whole", "cut")]
    assert len(norms[0]) == len(logged(tmp_path / "whole", "train/loss")) == 9
    assert norms[1] == pytest.approx(norms[0], rel=1e-3)
    whole, cut = (load_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt") for name in ("whole", "cut"))
    assert whole["global_step"] == cut["global_step"] == 9
    for name, weights in whole["state_dict"].items():
        torch.testing.assert_close(cut["state_dict"][name], weights, rtol=1e-3, atol=2e-5, msg=name)


def test_other_numbers_of_processes_are_refused(tmp_path: Path) -> None:
    printed = train(tmp_path, "run", "trainer.devices=4", "trainer.max_steps=2")
    assert "4 processes cannot share batching.canonical=6 equally; train with one of 1, 2, 3, 6" in printed
