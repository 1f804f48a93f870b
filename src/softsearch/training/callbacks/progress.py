"""How far training is: a bar on a terminal, a line now and then in a log."""

import logging
import sys
from time import monotonic
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)

log = logging.getLogger(__name__)
_EVERY = 30.0  # seconds between lines in a log
_SHOWN = {  # metric -> how it is shown
    "train/loss": "loss {:.3f}",
    "tokens/s": "{:,.0f} tokens/s",
    "lr": "lr {:.2e}",
    "val/loss": "val loss {:.3f}",
    "val/bleu": "BLEU {:.1f}",
}


class Progress(Callback):
    """Shows steps, loss, tokens/s, learning rate, and the last validation's loss and BLEU."""

    def __init__(self) -> None:
        self.bar: Bar | None = None
        self.last_line = 0.0

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Opens the bar."""
        if not trainer.is_global_zero:
            return
        self.last_line = monotonic()
        if sys.stderr.isatty():
            columns = (
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(20),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self.bar = Bar(*columns, TextColumn("{task.description}"))
            self.bar.start()
            self.bar.add_task("", total=trainer.max_steps if trainer.max_steps > 0 else None)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Moves the bar."""
        if not trainer.is_global_zero:
            return
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=trainer.global_step, description=_figures(trainer))
        elif monotonic() - self.last_line > _EVERY:
            self.last_line = monotonic()
            log.info("step %d of %d, %s", trainer.global_step, trainer.max_steps, _figures(trainer))

    def teardown(self, *_: Any, **__: Any) -> None:
        """Closes the bar, also when training failed."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def _figures(trainer: lightning.Trainer) -> str:
    metrics = trainer.callback_metrics | trainer.progress_bar_metrics
    return ", ".join(form.format(float(metrics[name])) for name, form in _SHOWN.items() if name in metrics)
