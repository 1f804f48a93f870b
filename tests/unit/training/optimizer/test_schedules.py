"""The learning rate that each optimizer step uses."""

import io
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau

from softsearch.errors import ConfigError
from softsearch.training.optimizer.schedules import Plateau, constant, cosine, halving, inverse_sqrt, linear_decay

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


def test_cosine_without_warm_up_is_pytorchs() -> None:
    found = rates(lambda o: cosine(o, warmup_steps=1, total_steps=9, floor=0.1), 10)
    assert found == pytest.approx(rates(lambda o: CosineAnnealingLR(o, T_max=9, eta_min=0.1 * PEAK), 10))
    assert found[9] == pytest.approx(0.1)


def test_cosine_after_a_warm_up() -> None:
    found = rates(lambda o: cosine(o, warmup_steps=3, total_steps=7), 10)
    fall = [(1 + math.cos(math.pi * done / 5)) / 2 for done in range(6)]  # equation 5, T_i = 5
    assert found == pytest.approx([1 / 3, 2 / 3, *fall, 0, 0])


def test_cosine_of_a_run_shorter_than_its_warm_up() -> None:
    found = rates(lambda o: cosine(o, warmup_steps=4, total_steps=3), 6)  # of one that goes on after it, too
    assert found == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 0, 0])


def figure(value: float) -> dict[str, Tensor]:
    return {"val/loss": torch.tensor(value, dtype=torch.float64)}


def make_plateau(**options: Any) -> tuple[Plateau, Optimizer]:
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    return Plateau(optimizer, **options), optimizer


def observed(plateau: Plateau, optimizer: Optimizer, values: list[float]) -> list[float]:
    """The rates after each validation, each of them after a step."""
    found = []
    for value in values:
        optimizer.step()
        plateau.step()
        plateau.observe(figure(value))
        found.append(optimizer.param_groups[0]["lr"])
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("patience", [0, 1, 3])
def test_plateau_reduces_when_pytorchs_does(mode: Any, patience: int, seed: int) -> None:
    draw = random.Random(seed)
    values = [float(draw.randint(0, 9)) if draw.random() < 0.9 else math.nan for _ in range(40)]
    optimizer = SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    theirs = ReduceLROnPlateau(optimizer, mode, factor=0.7, patience=patience, threshold=0, threshold_mode="abs", eps=0)
    expected = []
    for value in values:
        theirs.step(value)
        expected.append(optimizer.param_groups[0]["lr"])
    assert expected[-1] < PEAK
    assert observed(*make_plateau(mode=mode, factor=0.7, patience=patience), values) == pytest.approx(expected)


def test_plateau_holds_from_the_next_step_on_and_stays() -> None:
    plateau, optimizer = make_plateau(patience=0)
    assert observed(plateau, optimizer, [2.0, 3.0, 1.0]) == [PEAK, PEAK / 2, PEAK / 2]
    plateau.step()
    assert optimizer.param_groups[0]["lr"] == PEAK / 2


def test_plateau_warms_up_and_passes_over_validations_before_that() -> None:
    plateau, optimizer = make_plateau(patience=0, warmup_steps=4)
    assert optimizer.param_groups[0]["lr"] == PEAK / 4
    found = observed(plateau, optimizer, [0.0, 1.0, 2.0, 3.0, 3.0])
    assert found == pytest.approx([PEAK / 2, 3 * PEAK / 4, PEAK, PEAK, PEAK / 2])


@pytest.mark.parametrize("cut", range(1, 8))
def test_plateau_goes_on_from_its_state(cut: int) -> None:
    values, options = [5.0, 5.0, 4.0, 4.0, 6.0, 4.0, 3.0, 3.0, 3.0], {"patience": 1, "warmup_steps": 2}
    whole = observed(*make_plateau(**options), values)
    assert len(set(whole)) > 2
    plateau, optimizer = make_plateau(**options)
    first = observed(plateau, optimizer, values[:cut])
    file = io.BytesIO()
    torch.save((plateau.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    states = torch.load(file, weights_only=True)
    plateau, optimizer = make_plateau(**options)
    optimizer.load_state_dict(states[1])
    plateau.load_state_dict(states[0])
    assert first + observed(plateau, optimizer, values[cut:]) == whole


def test_plateau_names_the_figures_that_there_are() -> None:
    plateau, _ = make_plateau(monitor="val/blue")
    with pytest.raises(ConfigError, match=r"scheduler\.monitor is 'val/blue', expected one of val/loss"):
        plateau.observe(figure(1.0))
