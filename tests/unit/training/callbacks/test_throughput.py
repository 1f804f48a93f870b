"""The figures of a run's speed."""

from pathlib import Path
from time import sleep
from typing import Any

import pytest
from lightning import Callback, Trainer

from softsearch.errors import ConfigError
from softsearch.models.loss import CrossEntropy, StepContext
from softsearch.training.callbacks.lr_range import RateRange
from softsearch.training.callbacks.throughput import Throughput
from tests.support.small_run import fit


def test_a_resumed_run_counts_on(tmp_path: Path) -> None:
    first, second = Throughput(), Throughput()
    run = tmp_path / "run"
    fit(tmp_path, run, first)
    fit(tmp_path, run, second, resume=run / "checkpoints" / "last.ckpt")  # which has no step left to do
    names = (
        "train/tokens_per_second",
        "train/seconds",
        "train/elapsed_seconds",
        "train/padding_efficiency",
        "train/steps",
    )
    assert {name: second.summary()[name] for name in names} == {name: first.summary()[name] for name in names}
    assert first.summary()["train/tokens_per_second"] > 0
    assert first.summary()["train/elapsed_seconds"] > first.summary()["train/seconds"]  # there was a validation


class Watch(Callback):
    """Notes after each batch the number of those that have been logged, and before the next one the logged rate."""

    def __init__(self, speed: Throughput) -> None:
        self.speed, self.logged, self.rates = speed, list[float](), dict[int, float]()

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        if "lr" in trainer.callback_metrics:
            self.rates[trainer.global_step] = float(trainer.callback_metrics["lr"])

    def on_train_batch_end(self, *_: Any) -> None:
        self.logged.append(self.speed.logged["steps"])


def test_accumulated_batches_are_logged_together(tmp_path: Path) -> None:
    speed, rates = Throughput(), RateRange(path=tmp_path / "lr.png", lowest=1e-9)
    watch = Watch(speed)
    fit(tmp_path, tmp_path / "run", speed, rates, watch, batches=60, accumulate=2, log_every_n_steps=1)
    assert watch.logged[:9] == [0, 2, 2, 4, 4, 6, 6, 8, 8]  # no window ends with the epoch of seven
    assert len(rates.losses) == len(rates.rates) == 30
    steps = sorted(watch.rates)
    assert [watch.rates[step] for step in steps] == pytest.approx([rates.rates[step - 1] for step in steps])


class Logging(CrossEntropy):
    """A loss that logs a number under a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def begin_step(self, step: StepContext) -> None:
        step.log(self.name, step.number)


def test_what_a_loss_logs_is_logged_with_the_rest_unless_a_name_is_taken(tmp_path: Path) -> None:
    trainer = fit(tmp_path, tmp_path / "run", Throughput(), loss=Logging("number"), batches=4, log_every_n_steps=1)
    assert trainer.callback_metrics["train/number"] == 3
    assert "train/nll" in trainer.callback_metrics
    with pytest.raises(ConfigError, match="the loss logs train/nll, which every run logs; give it another name"):
        fit(tmp_path, tmp_path / "other", Throughput(), loss=Logging("nll"), batches=4, log_every_n_steps=1)


class SlowValidation(Callback):
    """Whose end is half a second late."""

    seconds = 0.0

    def on_validation_epoch_end(self, trainer: Trainer, *_: Any) -> None:
        if not trainer.sanity_checking:
            sleep(0.5)
            self.seconds += 0.5


def test_every_validation_counts(tmp_path: Path) -> None:
    speed, validation = Throughput(), SlowValidation()
    fit(tmp_path, tmp_path / "run", validation, speed)
    assert validation.seconds
    assert speed.summary()["train/elapsed_seconds"] > speed.summary()["train/seconds"] + validation.seconds
