"""Whatever ends a run, its last step is validated once and saved, and the run can be continued exactly."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import lightning
import pytest
from lightning.pytorch.callbacks import Callback, EarlyStopping

from softsearch.errors import ConfigError
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.loggers.metrics_csv import MetricsFile
from tests.support.small_run import assert_same_bits, best_of, files, fit

EPOCH = 7  # batches
NEVER = {"val_check_interval": 1000}


class Watch(Callback):
    """Notes the steps that are validated and logs the loss of each step."""

    def __init__(self) -> None:
        self.validated: list[int] = []

    def on_train_batch_end(self, _: lightning.Trainer, pl_module: Any, *__: Any) -> None:
        pl_module.log("train/loss", pl_module.last_loss)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        self.validated.append(trainer.global_step)


def last(run: Path) -> Path:
    return run / "checkpoints" / "last.ckpt"


def trained(run: Path) -> tuple[int, int]:
    """Steps and batches of the last checkpoint."""
    checkpoint = load_checkpoint(last(run))
    return checkpoint["global_step"], checkpoint["ParallelDataModule"]["batches_trained"]


@pytest.mark.parametrize(
    ("options", "accumulate", "steps", "batches"),
    [
        ({"max_steps": 5}, 1, 5, 5),
        ({"max_steps": 2}, 3, 2, 6),
        ({"max_epochs": 1}, 1, EPOCH, EPOCH),
        ({"max_epochs": 1, "max_steps": -1}, 3, 3, EPOCH),
        ({"max_epochs": 2, "max_steps": 5}, 1, 5, 5),
        ({"max_time": timedelta(milliseconds=1)}, 1, 1, 1),  # over after the first batch
        ({"max_time": timedelta(milliseconds=1)}, 3, 1, 3),
    ],
    ids=str,
)
def test_a_run_without_a_validation_ends_with_one(
    tmp_path: Path, options: dict[str, Any], accumulate: int, steps: int, batches: int
) -> None:
    """Fault: a run ends between two validations, or before the first. Effect: its last step is validated and saved."""
    watch = Watch()
    trainer = fit(tmp_path, tmp_path / "run", watch, accumulate=accumulate, **NEVER | options)
    assert watch.validated == [steps]
    assert trained(tmp_path / "run") == (steps, batches)
    assert files(tmp_path / "run") == ["best.ckpt", "last.ckpt", f"step-{steps}.ckpt"]
    assert Path(best_of(trainer).best_model_path).is_file()


@pytest.mark.parametrize(("batches", "validated"), [(8, [4, 8]), (6, [4, 6])])
def test_no_step_is_validated_twice(tmp_path: Path, batches: int, validated: list[int]) -> None:
    watch = Watch()
    fit(tmp_path, tmp_path / "run", watch, batches=batches)
    assert watch.validated == validated


def test_early_stopping_in_an_accumulation_window_waits_for_its_step(tmp_path: Path) -> None:
    """Validation comes after batches 4 and 8, the optimizer's steps after 3, 6 and 9, beyond the epoch's end at 7."""
    stopping = EarlyStopping(monitor="val/loss", mode="max", patience=1)  # the loss falls, so the second is no better
    fit(tmp_path, tmp_path / "run", stopping, accumulate=3, batches=30)
    assert trained(tmp_path / "run") == (3, 9)


def test_a_step_may_take_more_batches_than_an_epoch_has(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", batches=16, accumulate=8, **NEVER)
    assert trained(tmp_path / "run") == (2, 16)


def test_without_validations_the_last_step_is_saved_all_the_same(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", batches=5, limit_val_batches=0)
    assert files(tmp_path / "run") == ["last.ckpt", "step-5.ckpt"]
    assert trained(tmp_path / "run") == (5, 5)


@pytest.mark.parametrize("options", [{"max_steps": 5}, {"max_epochs": 1}, {"max_epochs": 1, "max_steps": -1}], ids=str)
def test_a_complete_run_that_is_resumed_does_nothing_more(tmp_path: Path, options: dict[str, Any]) -> None:
    run, watch = tmp_path / "run", Watch()
    fit(tmp_path, run, **NEVER | options)
    before = last(run).read_bytes()
    trainer = fit(tmp_path, run, watch, resume=last(run), **NEVER | options)
    assert watch.validated == []
    assert last(run).read_bytes() == before
    assert best_of(trainer).best_model_path == str(run / "checkpoints" / "best.ckpt")


def test_more_batches_between_validations_than_an_epoch_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"val_check_interval is 1000, but an epoch has {EPOCH} batches"):
        fit(tmp_path, tmp_path / "run", val_check_interval=1000, check_val_every_n_epoch=1)


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("ended", "accumulate"),
    [
        (1, 1),
        (EPOCH + 2, 1),
        (4, 3),
        *(pytest.param(*pair, marks=pytest.mark.nightly) for pair in ((5, 1), (EPOCH, 1), (2, 3), (3, 3))),
    ],
    ids=str,
)
def test_a_run_that_goes_on_with_more_steps_is_exact(tmp_path: Path, ended: int, accumulate: int) -> None:
    """``ended`` steps and then more make the weights, and the rows of metrics, of a run that never ended there."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    def part(run: Path, steps: int, resume: Path | None = None) -> None:
        run.mkdir(exist_ok=True)
        logging: dict[str, Any] = {"logger": MetricsFile(path=run / "metrics.csv"), "log_every_n_steps": 1}
        fit(tmp_path, run, Watch(), accumulate=accumulate, resume=resume, max_steps=steps, **NEVER | logging)

    steps = 16 if accumulate == 1 else 6
    part(whole, steps)
    part(cut, ended)
    part(cut, steps, resume=last(cut))
    assert_same_bits(last(cut), last(whole))
    assert trained(cut) == trained(whole)
    found, expected = rows(cut), rows(whole)
    assert [row["step"] for row in found] == [str(step + 1) for step in range(steps)]
    assert [row["train/loss"] for row in found] == [row["train/loss"] for row in expected]
    assert [row["step"] for row in found if row["val/loss"]] == [str(ended), str(steps)]
