"""The suggested learning rate is where a smooth loss falls fastest, and a run that never learns has none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch.optim import SGD

from softsearch.errors import ConfigError
from softsearch.report.curves import draw_rates
from softsearch.training.callbacks.lr_range import RateRange, suggestion
from softsearch.training.optimizer.schedules import constant

RATES = np.geomspace(1e-6, 1.0, 200)


def fall(fastest: float) -> Any:
    return 9 - 6 / (1 + np.exp(-2 * np.log(RATES / fastest))) + (RATES / 0.5) ** 2


@pytest.mark.parametrize("fastest", [1e-4, 3e-3])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_suggestion_is_where_the_loss_falls_fastest(fastest: float, noise: float) -> None:
    losses = fall(fastest) + noise * np.random.default_rng(3).standard_normal(len(RATES))
    rate, _ = suggestion(RATES, losses)
    assert rate == pytest.approx(fastest, rel=0.1 if not noise else 0.5)  # a running mean would be at twice the rate


@pytest.mark.parametrize("peak", [20, 130, 170])
def test_a_batch_with_a_high_loss_is_no_fall(peak: int) -> None:
    losses = fall(1e-3)
    losses[peak : peak + 2] *= 1.7
    assert suggestion(RATES, losses)[0] == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize("exploded", [40.0, 1e7, np.inf, np.nan])
def test_the_suggestion_and_the_curve_are_of_the_losses_before_the_explosion(
    exploded: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = fall(1e-3)
    losses[110:] = exploded  # at a rate of 0.002, while it falls
    rate, lines = suggestion(RATES, losses)
    assert rate == pytest.approx(1e-3, rel=0.2)
    assert lines.shape == (2, 110)
    drawn: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.extend(figure.axes))
    draw_rates(RATES, losses, lines[0], rate, tmp_path / "lr.png")
    (axes,) = drawn
    low, high = axes.get_ylim()
    for line in axes.lines[:2]:
        assert np.nanmin(line.get_ydata()) >= low
        assert np.nanmax(line.get_ydata()) <= high
    assert high - low < 8  # the scale is that of the losses before


@pytest.mark.parametrize("losses", [np.linspace(1, 2, 200), np.linspace(2, 1, 10), np.full(200, np.nan)])
def test_a_loss_that_never_fell_has_no_suggestion(losses: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="no learning rate can be suggested"):
        suggestion(RATES[: len(losses)], losses)


def test_rates_rise_from_the_lowest_to_the_highest_and_groups_keep_their_ratio(tmp_path: Path) -> None:
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = SGD([{"params": weights[:1], "lr": 0.3}, {"params": weights[1:], "lr": 0.6}])
    schedule = constant(optimizer, warmup_steps=10)
    callback, found = RateRange(path=tmp_path / "lr.png", lowest=1e-4, highest=1.0), []
    for step in range(5):
        stage: Any = SimpleNamespace(global_step=step, max_steps=5)
        callback.on_before_optimizer_step(stage, None, optimizer)
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert np.array(found) == pytest.approx(np.geomspace(1e-4, 1.0, 5)[:, None] * [1, 2])
