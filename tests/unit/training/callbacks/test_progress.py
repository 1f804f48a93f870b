"""Lines of progress in a log that is no terminal: the step, the metrics, and the time that is left."""

import logging
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from softsearch.training.callbacks import progress, time_limit
from softsearch.training.callbacks.progress import Progress
from softsearch.training.callbacks.time_limit import TimeLimit


@pytest.mark.parametrize(
    ("total", "limit", "line"),
    [
        (110.0, None, "step 30 of 110, loss 2.500, 0:02:40 left"),
        (float("inf"), None, "step 30, loss 2.500"),
        (110.0, 300, "step 30 of 110, loss 2.500, 0:02:40 left"),
        (110.0, 150, "step 30 of 110, loss 2.500, 0:01:50 left"),
        (float("inf"), 150, "step 30, loss 2.500, 0:01:50 left"),
    ],
)
def test_the_time_left_is_that_of_the_steps_of_this_process_or_of_the_limit(
    total: float, limit: int | None, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    for module in (progress, time_limit):
        monkeypatch.setattr(module, "monotonic", lambda: now)
    callbacks = [] if limit is None else [TimeLimit(timedelta(seconds=limit))]
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: False))
    trainer: Any = SimpleNamespace(
        estimated_stepping_batches=total,
        callbacks=callbacks,
        strategy=SimpleNamespace(broadcast=lambda value: value),
        max_steps=-1,
        lr_scheduler_configs=[],
        global_step=10,  # a run that was resumed
        is_global_zero=True,
        callback_metrics={"train/loss": torch.tensor(2.5)},
        progress_bar_metrics={},
    )
    callback = Progress(metric="val/bleu")
    for each in (*callbacks, callback):
        each.on_train_start(trainer)
    now, trainer.global_step = 140.0, 30  # two seconds for a step
    with caplog.at_level(logging.INFO):
        callback.on_train_batch_end(trainer)
    assert caplog.messages == [line]
