"""Training progress: a bar on a terminal, otherwise a line in the log every 30 seconds."""

import logging
import math
import sys
from datetime import timedelta
from time import monotonic
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from rich import progress

from softsearch.evaluation.schema import three_digits
from softsearch.training.callbacks.time_limit import TimeLimit, time_limit_of

log = logging.getLogger(__name__)
_SECONDS = 30.0  # between lines in the log
_FORMATS = {  # metric -> format
    "train/loss": "loss {:.3f}",
    "tokens/s": "{} tokens/s",
    "lr": "lr {:.2e}",
    "val/loss": "val loss {:.3f}",
}


class Progress(Callback):
    """Shows steps, loss, tokens/s, learning rate, and the last validation's loss and ``metric``."""

    def __init__(self, *, metric: str) -> None:
        self.formats = {metric: metric.removeprefix("val/") + " {:.3g}"} | _FORMATS
        self.bar: progress.Progress | None = None
        self.last_line = self.began = 0.0  # seconds
        self.limit: TimeLimit | None = None
        self.first = self.total = 0  # step where this process began, and last step or 0 if it is unknown

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Opens the bar."""
        self.last_line = self.began = monotonic()
        self.limit = time_limit_of(trainer)
        steps = trainer.estimated_stepping_batches
        self.first, self.total = trainer.global_step, int(steps) if steps < float("inf") else 0
        if trainer.is_global_zero and sys.stderr.isatty():
            self.bar = progress.Progress(
                "step",
                progress.MofNCompleteColumn(),
                progress.BarColumn(20),
                progress.TimeElapsedColumn(),
                "{task.fields[left]}",
                "{task.description}",
            )
            self.bar.start()
            self.bar.add_task("", total=self.total or None, left="")

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Moves the bar."""
        if self.bar is not None:
            step, task = trainer.global_step, self.bar.task_ids[0]
            self.bar.update(task, completed=step, description=self._metrics(trainer), left=self._time_left(step))
        elif trainer.is_global_zero and monotonic() - self.last_line > _SECONDS:
            self.last_line = monotonic()
            of = f" of {self.total:,}" if self.total else ""
            parts = (f"step {trainer.global_step}{of}", self._metrics(trainer), self._time_left(trainer.global_step))
            log.info(", ".join(filter(None, parts)))

    def teardown(self, *_: Any, **__: Any) -> None:
        """Closes the bar, also when training failed."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _time_left(self, step: int) -> str:
        """Estimates the time to the last step from the speed of this process, validations included.

        A time limit that ends sooner is the time left.
        """
        seconds = math.inf if self.limit is None else self.limit.left
        if self.total and step > self.first:
            seconds = min(seconds, (monotonic() - self.began) / (step - self.first) * max(0, self.total - step))
        return f"{timedelta(seconds=round(seconds))} left" if math.isfinite(seconds) else ""

    def _metrics(self, trainer: lightning.Trainer) -> str:
        metrics = trainer.callback_metrics | trainer.progress_bar_metrics
        shown = {name: float(metrics[name]) for name in self.formats if name in metrics}
        speed = {name: three_digits(value) for name, value in shown.items() if name == "tokens/s"}
        return ", ".join(self.formats[name].format(value) for name, value in (shown | speed).items())
