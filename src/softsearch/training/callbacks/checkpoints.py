"""Checkpoints of a run (best, last and newest), validation of its last step, and early stopping."""

import logging
import math
from pathlib import Path
from typing import Any, Literal

import lightning
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from softsearch.errors import CheckpointError
from softsearch.ranges import AtLeastOne
from softsearch.training.checkpoints.checkpoint_io import check_hash
from softsearch.training.checkpoints.folder import BEST, LAST, keep_steps
from softsearch.training.lightning_internals import is_accumulating, is_last_batch

log = logging.getLogger(__name__)


class FinalValidation(Checkpoint):
    """Validates after the last step, whichever limit ends the run: ``max_steps``, ``max_epochs`` or ``max_time``.

    Lightning validates when it is asked to stop, so this callback asks it after the last step. If a time limit or early
    stopping asks in the middle of an accumulation window, the request waits for the optimizer's step, because a
    checkpoint holds no gradients. This is a ``Checkpoint``, so that Lightning puts it after its timer; it must
    precede the other checkpoints, which act on its decision.
    """

    def __init__(self) -> None:
        self.put_off = False

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Asks Lightning to stop after the last step; all processes make the same decision."""
        if is_accumulating(trainer):
            self._postpone(trainer)
        elif self.put_off or _at_limit(trainer):
            trainer.should_stop = True

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Postpones the end that early stopping has asked for."""
        if is_accumulating(trainer):
            self._postpone(trainer)

    def _postpone(self, trainer: lightning.Trainer) -> None:
        self.put_off |= trainer.should_stop
        trainer.should_stop = False


class EarlyStopping(lightning.pytorch.callbacks.EarlyStopping):
    """Ends a run whose monitored metric no longer improves, unless it has never changed."""

    unmoved, has_moved = 0, False  # validations with the value of the first one

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Counts a validation, unless the metric still has its first value."""
        value = trainer.callback_metrics.get(self.monitor)
        fitting = trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking
        if not fitting or value is None or self.has_moved:
            super().on_validation_end(trainer, pl_module)
            return
        self.has_moved = self.unmoved > 0 and not bool(value == self.best_score.to(value.device))
        self.unmoved += not self.has_moved
        if self.unmoved == 1 or self.has_moved:
            super().on_validation_end(trainer, pl_module)
        elif self.unmoved == self.patience + 1:
            log.warning(
                "%s was %.4g at all %d validations, so it cannot end the run; set monitor=val/loss, or another metric",
                self.monitor,
                value,
                self.unmoved,
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns the counts."""
        return super().state_dict() | {"unmoved": self.unmoved, "has_moved": self.has_moved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting; older checkpoints have no count of unchanged validations."""
        super().load_state_dict(state_dict)
        self.unmoved, self.has_moved = state_dict.get("unmoved", 0), state_dict.get("has_moved", True)


class BestCheckpoint(ModelCheckpoint):
    """Keeps ``best.ckpt``; a resumed run finds it in its folder of checkpoints, even after the folder was moved.

    Among validations with the same best score, the one with the lowest loss wins.
    """

    scores: tuple[float, float, int] = (math.inf, -math.inf, 0)  # lowest, highest, number of scores

    def __init__(self, *, dirpath: str | Path, monitor: str, mode: Literal["min", "max"]) -> None:
        super().__init__(
            dirpath=dirpath,
            filename=Path(BEST).stem,
            monitor=monitor,
            mode=mode,
            save_on_train_epoch_end=False,  # only at validations, where a run can resume
            enable_version_counter=False,
        )
        self.validated: dict[str, float] = {}  # what the best validation logged

    def check_monitor_top_k(self, trainer: lightning.Trainer, current: Tensor | None = None) -> bool:
        """Tells whether a validation is the best so far."""
        if current is None:
            return False
        is_best = super().check_monitor_top_k(trainer, current)
        logged = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        ties = self.best_model_score is not None and bool(current == self.best_model_score)
        is_lower = logged.get("val/loss", math.inf) < self.validated.get("val/loss", math.inf)
        is_best = is_best or trainer.strategy.reduce_boolean_decision(ties and is_lower)
        self.validated = logged if is_best else self.validated
        lowest, highest, number = self.scores
        self.scores = min(lowest, float(current)), max(highest, float(current)), number + 1
        return is_best

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Warns if the score was the same at all validations."""
        super().on_train_end(trainer, pl_module)
        lowest, highest, number = self.scores
        if lowest == highest and number > 1 and trainer.is_global_zero:
            log.warning(
                "%s was %.4g at all %d validations, so best.ckpt is the one with the lowest val/loss, %.4g; set "
                "monitor=val/loss, or another metric",
                self.monitor,
                lowest,
                number,
                self.validated.get("val/loss", math.inf),
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns the best score so far; its checkpoint is in the same folder."""
        return {name: getattr(self, name) for name in ("best_model_path", "best_model_score", "validated", "scores")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues with the best score so far if its checkpoint exists and is undamaged."""
        score = state_dict["best_model_score"]
        self.scores = tuple(state_dict.get("scores", self.scores))
        if not state_dict["best_model_path"] or score is None:
            return
        best = Path(str(self.dirpath)) / BEST
        try:
            check_hash(best)
        except CheckpointError as error:
            log.warning("the best checkpoint so far cannot be read, so the next validation replaces it: %s", error)
            return
        self.best_model_path = self.kth_best_model_path = str(best)
        self.best_model_score = self.kth_value = score
        self.validated = state_dict.get("validated", {})  # checkpoints of 0.2 have none
        self.best_k_models = {str(best): score}


class LastCheckpoint(Checkpoint):
    """Saves ``last.ckpt`` after every validation, and keeps the newest few as ``step-N.ckpt``.

    In an accumulation window it waits for the optimizer's step, because gradients are not saved.

    Args:
        keep: number of newest checkpoints to keep, for averaging and as a fallback if one is damaged.
    """

    def __init__(self, *, dirpath: str | Path, keep: AtLeastOne = 5) -> None:
        self.folder, self.keep = Path(dirpath), keep
        self.steps: list[int] = []  # of this run; the folder may contain those of another
        self.due = False

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Saves, or waits for the optimizer's step."""
        fitting = trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking
        self.due = fitting and not trainer.fast_dev_run  # type: ignore[attr-defined]  # set by a connector
        self.on_train_batch_end(trainer)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Saves a checkpoint that is due, also at the end of a run without validations."""
        self.due |= trainer.should_stop and not trainer.enable_validation
        if not self.due or is_accumulating(trainer):
            return
        self.due = False
        step = trainer.global_step
        self.steps = [*(s for s in self.steps if s < step), step][-self.keep :]
        trainer.save_checkpoint(self.folder / LAST)
        if trainer.is_global_zero:
            keep_steps(self.folder, self.steps)

    def state_dict(self) -> dict[str, Any]:
        """Returns the steps of the kept checkpoints."""
        return {"steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues the list of steps."""
        self.steps = list(state_dict["steps"])


def _at_limit(trainer: lightning.Trainer) -> bool:
    """Tells whether the step just taken is the last of ``max_steps`` or ``max_epochs``."""
    if 0 <= trainer.max_steps <= trainer.global_step:
        return True
    last_epoch = trainer.max_epochs is not None and 0 <= trainer.max_epochs <= trainer.current_epoch + 1
    return last_epoch and is_last_batch(trainer)
