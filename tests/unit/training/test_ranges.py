"""Options out of range are refused before anything is built, by the annotations of what they are passed to."""

from typing import Any

import pytest

from softsearch.app.config.validation import check
from softsearch.errors import ConfigError

LINEAR = {"warmup_steps": 1, "decay_from": 0.5, "total_steps": 8}
OUT_OF_RANGE: list[tuple[str, dict[str, Any], str, Any]] = [
    ("callbacks.dashboard.Dashboard", {}, "heatmaps", -1),
    ("callbacks.ema.Ema", {}, "decay", 0.0),
    ("callbacks.ema.Ema", {}, "decay", 1.0),
    ("callbacks.checkpoints.LastCheckpoint", {"dirpath": "x"}, "keep", 0),
    ("objectives.r_drop.r_drop", {}, "alpha", -1.0),
    ("objectives.scheduled_sampling.linear", {}, "c", -1.0),
    ("objectives.scheduled_sampling.linear", {"c": 0.1}, "k", 0.0),
    ("objectives.scheduled_sampling.linear", {"c": 0.1}, "floor", 1.0),
    ("objectives.scheduled_sampling.exponential", {}, "k", 1.0),
    ("objectives.scheduled_sampling.inverse_sigmoid", {}, "k", 0.5),
    ("optimizer.schedules.constant", {}, "warmup_steps", 0),
    ("optimizer.schedules.linear_decay", LINEAR, "total_steps", -1),
    ("optimizer.schedules.linear_decay", LINEAR, "decay_from", 1.0),
    ("optimizer.schedules.linear_decay", LINEAR, "decay_from", -0.1),
    ("optimizer.schedules.halving", {"every": 1}, "start", -1),
    ("optimizer.schedules.halving", {"start": 0}, "every", 0),
    ("optimizer.schedules.cosine", {"warmup_steps": 1, "total_steps": 4}, "floor", 1.0),
    ("optimizer.schedules.Plateau", {}, "factor", 1.0),
    ("optimizer.schedules.Plateau", {}, "factor", 0.0),
    ("optimizer.schedules.Plateau", {}, "patience", -1),
    ("optimizer.schedules.Plateau", {}, "warmup_steps", 0),
]


@pytest.mark.parametrize(("target", "others", "key", "value"), OUT_OF_RANGE)
def test_an_option_out_of_range_is_refused(target: str, others: dict[str, Any], key: str, value: float) -> None:
    node = {"_target_": f"softsearch.training.{target}", "_partial_": True, **others, key: value}
    with pytest.raises(ConfigError, match=rf"x\.{key} is {value} .*, expected .* of .*; change it"):
        check(node, "x")
