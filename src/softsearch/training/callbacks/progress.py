"""Training progress: a bar on a terminal, else a line in the log every 30 seconds."""

import logging
import sys
from time import monotonic
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from rich import progress

log = logging.getLogger(__name__)
_SECONDS = 30.0  # between lines in a log
_FORMATS = {  # by metric
    "train/loss": "loss {:.3f}",
    "tokens/s": "{:,.0f} tokens/s",
    "lr": "lr {:.2e}",
    "val/loss": "val loss {:.3f}",
}


class Progress(Callback):
    """Shows steps, loss, tokens/s, learning rate, and the last validation's loss and ``metric``."""

    def __init__(self, *, metric: str) -> None:
        self.formats = {metric: metric.removeprefix("val/") + " {:.3g}"} | _FORMATS
        self.bar: progress.Progress | None = None
        self.last_line = 0.0

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Opens the bar."""
        self.last_line = monotonic()
        if trainer.is_global_zero and sys.stderr.isatty():
            self.bar = progress.Progress(
                "step",
                progress.MofNCompleteColumn(),
                progress.BarColumn(20),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                "{task.description}",
            )
            self.bar.start()
            self.bar.add_task("", total=trainer.max_steps if trainer.max_steps > 0 else None)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Moves the bar."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=trainer.global_step, description=self._metrics(trainer))
        elif trainer.is_global_zero and monotonic() - self.last_line > _SECONDS:
            self.last_line = monotonic()
            log.info("step %d of %d, %s", trainer.global_step, trainer.max_steps, self._metrics(trainer))

    def teardown(self, *_: Any, **__: Any) -> None:
        """Closes the bar, also when training failed."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _metrics(self, trainer: lightning.Trainer) -> str:
        metrics = trainer.callback_metrics | trainer.progress_bar_metrics
        return ", ".join(form.format(float(metrics[name])) for name, form in self.formats.items() if name in metrics)
