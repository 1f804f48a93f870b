"""Learning curves as a figure in the run's folder."""

import logging
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.evaluation.metrics import facts
from softsearch.training.callbacks.translate import TranslateValidation

log = logging.getLogger(__name__)


class Curves(Callback):
    """Draws ``curves.png`` from ``metrics.csv`` at every validation; failures are only logged.

    Args:
        folder: the run's folder, with both files.
    """

    def __init__(self, *, folder: str | Path) -> None:
        self.folder, self.has_warned = Path(folder), False

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Draws the curves after the validation has been logged."""
        metrics = self.folder / "metrics.csv"
        if not trainer.is_global_zero or trainer.sanity_checking or not metrics.is_file():
            return
        try:
            from softsearch.files import CURVES
            from softsearch.report.curves import draw_curves, read_points

            callbacks = trainer.callbacks  # type: ignore[attr-defined]  # set by a connector
            translating = [callback.metrics for callback in callbacks if isinstance(callback, TranslateValidation)]
            shown = {name: fact for named in translating for name, fact in facts(named).items()}
            draw_curves({"": read_points(metrics)}, shown, self.folder / CURVES)
        except Exception as error:  # noqa: BLE001 - any failure of the disk, Matplotlib or its fonts
            if not self.has_warned:
                log.warning("the learning curves cannot be drawn: %s: %s", type(error).__name__, error)
            self.has_warned = True
