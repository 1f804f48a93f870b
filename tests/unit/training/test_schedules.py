"""The learning rate that each optimizer step uses."""

from collections.abc import Callable

import pytest
import torch
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from softsearch.errors import ConfigError
from softsearch.training.schedules import constant, halving, inverse_sqrt, linear_decay

PEAK = 0.5


def rates(schedule: Callable[[Optimizer], LRScheduler], steps: int) -> list[float]:
    """The rates of the first steps, as shares of the peak."""
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = schedule(optimizer)
    used = []
    for _ in range(steps):
        used.append(optimizer.param_groups[0]["lr"] / PEAK)
        optimizer.step()
        scheduler.step()
    return used


def test_constant() -> None:
    assert rates(lambda o: constant(o, warmup_steps=4), 6) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert rates(constant, 3) == [1, 1, 1]


def test_inverse_sqrt() -> None:
    found = rates(lambda o: inverse_sqrt(o, warmup_steps=4), 16)
    assert found[:4] == pytest.approx([0.25, 0.5, 0.75, 1])
    assert found[15] == pytest.approx(0.5)  # four times the warm-up: half the peak
    assert found[3:] == sorted(found[3:], reverse=True)


def test_linear_decay() -> None:
    found = rates(lambda o: linear_decay(o, warmup_steps=2, decay_from=0.5, total_steps=8), 10)
    assert found == pytest.approx([0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0])


def test_linear_decay_of_a_run_shorter_than_its_warm_up_still_ends_at_zero() -> None:
    found = rates(lambda o: linear_decay(o, warmup_steps=100, decay_from=0.5, total_steps=4), 6)
    assert max(found) < 0.05
    assert found[4:] == [0, 0]


def test_halving() -> None:
    found = rates(lambda o: halving(o, start=3, every=2), 9)
    assert found == [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125]
    assert rates(lambda o: halving(o, start=0, every=1), 2) == [0.5, 0.25]
    assert rates(lambda o: halving(o, start=3, every=1, warmup_steps=2), 5) == [0.5, 1, 1, 0.5, 0.25]


@pytest.mark.parametrize(("start", "every", "key"), [(-1, 1, "scheduler.start is -1"), (0, 0, "scheduler.every is 0")])
def test_halving_refuses_what_is_out_of_range(start: int, every: int, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        rates(lambda o: halving(o, start=start, every=every), 1)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"warmup_steps": 0, "decay_from": 0.5, "total_steps": 8}, "scheduler.warmup_steps is 0"),
        ({"warmup_steps": 1, "decay_from": 0.5, "total_steps": -1}, "scheduler.total_steps is -1"),
        ({"warmup_steps": 1, "decay_from": 1.0, "total_steps": 8}, "scheduler.decay_from is 1.0"),
        ({"warmup_steps": 1, "decay_from": -0.1, "total_steps": 8}, "scheduler.decay_from is -0.1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        rates(lambda o: linear_decay(o, **options), 1)  # type: ignore[arg-type]
