"""Lines of progress in a log that is no terminal: the step, the metrics, and the time that is left."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from softsearch.training.callbacks import progress
from softsearch.training.callbacks.progress import Progress


@pytest.mark.parametrize(
    ("total", "line"), [(110.0, "step 30 of 110, loss 2.500, 0:02:40 left"), (float("inf"), "step 30, loss 2.500")]
)
def test_the_time_left_is_that_of_the_steps_of_this_process(
    total: float, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: False))
    trainer: Any = SimpleNamespace(
        estimated_stepping_batches=total,
        global_step=10,  # a run that was resumed
        is_global_zero=True,
        callback_metrics={"train/loss": torch.tensor(2.5)},
        progress_bar_metrics={},
    )
    callback = Progress(metric="val/bleu")
    callback.on_train_start(trainer)
    now, trainer.global_step = 140.0, 30  # two seconds for a step
    with caplog.at_level(logging.INFO):
        callback.on_train_batch_end(trainer)
    assert caplog.messages == [line]
