"""Resuming: a run that was terminated ends with the same bits as one that was not."""

import csv
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from softsearch.text.noise import NO_NOISE, Noise
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.faults.preemption import Preemption
from tests.support.commands import SMALL
from tests.support.faulty_trainings import train_with_faults
from tests.support.small_run import Terminate, assert_same_bits, small_data, small_module, small_trainer

EPOCH, BATCHES = 7, 24  # batches of an epoch, and of the whole run


def fit(
    folder: Path, name: str, *, resume: Path | None = None, accumulate: int = 1, kill: int = -1, noise: Noise = NO_NOISE
) -> Path:
    """Trains with dropout, sampled subwords and validation, and returns the last checkpoint."""
    last = folder / name / "last.ckpt"
    data = small_data(folder, sampling=0.3, noise=noise)
    module = small_module(data)
    callbacks = [ExactResume(seed=1), Terminate(kill), Preemption(path=last)]
    trainer = small_trainer(BATCHES // accumulate, callbacks, accumulate=accumulate)
    torch.manual_seed(os.getpid() + kill)  # whatever the process did before must not matter
    if kill < 0:
        trainer.fit(module, datamodule=data, ckpt_path=resume)
        trainer.save_checkpoint(last)
        return last
    with pytest.raises(SystemExit) as ended:
        trainer.fit(module, datamodule=data, ckpt_path=resume)
    assert ended.value.code == 143
    return last


def weights(path: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = load_checkpoint(path)["state_dict"]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("resume")


@pytest.fixture(scope="module")
def straight(folder: Path) -> dict[int, Path]:
    """Never interrupted, by accumulated batches."""
    return {accumulate: fit(folder, f"straight-{accumulate}", accumulate=accumulate) for accumulate in (1, 3)}


def at_night(kills: list[int]) -> list[Any]:
    return [pytest.param(kill, marks=pytest.mark.nightly) for kill in kills]


# Before a validation, at the end of an epoch, inside a later one; at the first step, at a validation, around the end of
# an epoch, at the last step.
@pytest.mark.parametrize("kill", [2, EPOCH - 1, 2 * EPOCH + 3, *at_night([0, 3, EPOCH - 2, EPOCH, BATCHES - 2])])
def test_any_step(folder: Path, straight: dict[int, Path], kill: int) -> None:
    """Fault: a run is killed after any step, also in a validation or at the end of an epoch.

    Effect: after `resume=auto` its weights are bit-identical to those of a run that was never stopped.
    """
    saved = fit(folder, f"kill-{kill}", kill=kill)
    assert load_checkpoint(saved)["ParallelDataModule"]["batches_trained"] == kill + 1
    assert_same_bits(fit(folder, f"resumed-{kill}", resume=saved), straight[1])


@pytest.mark.day
def test_two_interruptions(folder: Path, straight: dict[int, Path]) -> None:
    first = fit(folder, "first", kill=4)
    second = fit(folder, "second", resume=first, kill=EPOCH + 4)
    assert_same_bits(fit(folder, "third", resume=second), straight[1])


@pytest.mark.parametrize("kill", [4, EPOCH + 2, *at_night([0, EPOCH - 1])])
def test_gradients_in_accumulation_are_not_lost(folder: Path, straight: dict[int, Path], kill: int) -> None:
    """Fault: a run is stopped in the middle of an accumulation window.

    Effect: the checkpoint waits for the end of the window; no batch is lost or repeated.
    """
    saved = fit(folder, f"kill-3-{kill}", accumulate=3, kill=kill)
    assert_same_bits(fit(folder, f"resumed-3-{kill}", resume=saved, accumulate=3), straight[3])


@pytest.mark.day
def test_noise_is_the_same_after_an_interruption(folder: Path, straight: dict[int, Path]) -> None:
    """Fault: a run with dropout is resumed.

    Effect: its masks are the same, because every step is seeded by its number.
    """
    noise = Noise(upper=0.2, title=0.2, lower=0.1, merge=0.3, end_punctuation=0.2, typos=0.3)
    whole = fit(folder, "noisy", noise=noise)
    saved = fit(folder, "noisy-killed", noise=noise, kill=EPOCH + 2)
    assert_same_bits(fit(folder, "noisy-resumed", noise=noise, resume=saved), whole)
    ours, theirs = weights(whole), weights(straight[1])
    assert any(ours[name].shape != theirs[name].shape or not torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.day
def test_a_run_without_resuming_differs(folder: Path, straight: dict[int, Path]) -> None:
    """The comparison can fail: other batches give other bits."""
    ours, theirs = weights(straight[1]), weights(straight[3])
    assert any(not torch.equal(ours[name], theirs[name]) for name in ours)


# ------------------------------------------------------------------------------------------------ the real command

OPTIONS = (
    *SMALL,
    "data.train_size=120",
    "batching.tokens=300",
    "model.encoder.dropout=0.3",
    "model.decoder.dropout=0.3",
    "trainer.precision=32-true",
    "trainer.max_steps=24",
    "trainer.val_check_interval=8",
    "trainer.log_every_n_steps=1",
    "search=greedy",
    "resume=auto",
)
KILL = 17


def train(run: Path, cache: Path, *options: str, kill: int = -1) -> subprocess.CompletedProcess[str]:
    options = (*OPTIONS, *options, f"hydra.run.dir={run}", f"cache_dir={cache}")
    return train_with_faults(options, {0: {kill: "sigterm"}})


def losses(run: Path) -> dict[int, str]:
    with (run / "metrics.csv").open(newline="") as file:
        return {int(row["step"]): row["train/loss"] for row in csv.DictReader(file) if row["train/loss"]}


@pytest.fixture(scope="module")
def uninterrupted(folder: Path) -> Path:
    done = train(folder / "uninterrupted", folder / "cache")
    assert done.returncode == 0, done.stderr
    assert len(losses(folder / "uninterrupted")) == 24
    return folder / "uninterrupted"


@pytest.mark.parametrize("workers", [*at_night([0]), 1])
def test_the_command_resumes_in_the_middle_of_an_epoch(folder: Path, uninterrupted: Path, workers: int) -> None:
    run, option = folder / f"workers-{workers}", f"batching.num_workers={workers}"
    killed = train(run, folder / "cache", option, kill=KILL)
    assert killed.returncode == 143, killed.stderr
    assert "Traceback" not in killed.stderr
    state = load_checkpoint(run / "checkpoints" / "last.ckpt")
    assert state["global_step"] == KILL + 1
    assert not (run / "metrics.json").exists()
    resumed = train(run, folder / "cache", option)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_bits(run / "checkpoints" / "last.ckpt", uninterrupted / "checkpoints" / "last.ckpt")
    assert load_checkpoint(run / "checkpoints" / "last.ckpt")["global_step"] == 24
    assert losses(run) == losses(uninterrupted)
    assert (run / "metrics.json").is_file()
