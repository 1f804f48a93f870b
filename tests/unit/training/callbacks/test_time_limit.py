"""A limit of time: how it is written, what the schedule makes of it, and that a resumed run goes on with it."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch.optim import SGD, Optimizer

from softsearch.app.config.composition import composed
from softsearch.errors import ConfigError
from softsearch.training.callbacks import time_limit
from softsearch.training.callbacks.time_limit import TimeLimit, parse_duration
from softsearch.training.optimizer.schedules import Schedule, Timed, constant, cosine, inverse_sqrt, linear_decay
from tests.support.small_run import fit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("90s", 90),
        ("1h30m", 5400),
        ("1h 30min", 5400),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("1d12h", 129_600),
        ("10 minutes", 600),
        ("2 Hours", 7200),
        ("01:30:00", 5400),
        ("1:30:00", 5400),
        ("00:01:30:00", 5400),
        ("1:12:00:00", 129_600),
        ("1-12:00:00", 129_600),
        ("36:00:00", 129_600),
    ],
)
def test_a_time_is_read_as_people_write_it(text: str, seconds: float) -> None:
    typed = composed("train", f"trainer.max_time={text}").trainer.max_time
    assert parse_duration(typed) == timedelta(seconds=seconds)


def test_a_section_is_read_as_lightning_reads_it() -> None:
    assert parse_duration({"hours": 1, "minutes": 30}) == timedelta(hours=1.5)


@pytest.mark.parametrize(
    "value", ["abc", "", "0s", "00:00:00", "5", "05:00", "1:60:00", "-5m", "5m1h", "5 fortnights", "9" * 99 + "d",
              "9999999999d", True, 0, {"years": 1}, {"hours": "x"}]
)  # fmt: skip
def test_another_time_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"trainer\.max_time is .*, expected a time .* such as 5m, 1h30m"):
        parse_duration(value)


def test_the_advice_for_a_number_is_a_time() -> None:
    with pytest.raises(
        ConfigError, match=r"trainer\.max_time is 300, .* write trainer\.max_time=300m .*300s"
    ) as refused:
        parse_duration(300)
    for typed in str(refused.value).split("trainer.max_time=")[1:]:
        parse_duration(typed.split()[0])


def rates(make: Callable[[Optimizer], Schedule], times: list[float], steps: float) -> list[float]:
    """The rates of the steps at which these shares of the time have passed."""
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make(optimizer)
    found = []
    for share in times:
        schedule.spend(share, steps)
        optimizer.step()
        schedule.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


def test_the_schedule_is_that_of_steps_or_of_time_whichever_is_ahead() -> None:
    decay = partial(linear_decay, warmup_steps=100, decay_from=0.5, total_steps=1000)
    assert rates(decay, [0, 0.05, 0.1, 0.5, 0.75, 1], 1000) == pytest.approx([0.02, 0.51, 1, 1, 0.5, 0])
    assert rates(decay, [0.0] * 120, 1000)[-21:] == [1.0] * 21  # steps ahead
    assert rates(partial(constant, warmup_steps=100), [0.05, 0.1, 1], 1000) == pytest.approx([0.51, 1, 1])
    found = rates(partial(cosine, warmup_steps=100, total_steps=1000, floor=0.1), [0.05, 0.1, 1], 1000)
    assert found == pytest.approx([0.51, 1, 0.1], abs=1e-4)
    found = rates(partial(inverse_sqrt, warmup_steps=100), [0.05, 0.0999, 0.4], float("inf"))  # a tenth of the time
    assert found == pytest.approx([0.51, 1, 0.5], rel=0.01)


class Clock(Callback):
    """A second for each batch, and a validation that takes ten; notes the rate of each step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.rates: list[float] = []
        monkeypatch.setattr(time_limit, "monotonic", lambda: self.now)

    def on_before_optimizer_step(self, trainer: lightning.Trainer, *_: Any) -> None:
        self.now += 1
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def on_validation_start(self, *_: Any) -> None:
        self.now += 10


def test_a_run_ends_by_its_time_and_a_resumed_one_has_the_rates_of_one_that_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fourth batch is followed by a validation, so 30 seconds are over after the tenth."""

    def run(name: str, **options: Any) -> tuple[lightning.Trainer, list[float], TimeLimit]:
        clock, limit = Clock(monkeypatch), TimeLimit(timedelta(seconds=30))
        clock.now += 500 * len(name)  # time between starts does not count
        trainer = fit(tmp_path, tmp_path / name, clock, limit, **options)
        return trainer, clock.rates, limit

    trainer, whole, limit = run("whole", batches=100)
    assert (trainer.global_step, limit.over, limit.left) == (10, True, 0)
    assert isinstance(trainer.lr_scheduler_configs[0].scheduler, Timed)
    assert len(set(whole)) == 10
    assert whole[-1] < 0.01 * (5 / 80) ** 0.5  # as at step 80, because more than 80 % of the time has passed
    last = tmp_path / "cut" / "checkpoints" / "last.ckpt"
    _, first, _ = run("cut", batches=100, limit_train_batches=4, max_epochs=1)
    trainer, rest, _ = run("cut", batches=100, resume=last)
    assert first + rest == whole
    trainer, nothing, _ = run("cut", batches=100, resume=last)
    assert (trainer.global_step, nothing) == (10, [])


def test_the_test_has_a_tenth_of_the_time_or_two_minutes() -> None:
    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(broadcast=lambda x: x), max_steps=9, global_step=1)
    trainer.lr_scheduler_configs = []
    for limit, seconds in ((timedelta(minutes=5), 120), (timedelta(hours=2), 720)):
        callback = TimeLimit(limit)
        assert callback.test_seconds == float("inf")
        callback.load_state_dict({"seconds": limit.total_seconds()})
        callback.on_train_start(trainer)
        assert trainer.should_stop
        assert callback.test_seconds == seconds
