"""A validation, and so a checkpoint, after the last step of a run."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import Checkpoint


class FinalValidation(Checkpoint):
    """Validates after the last step, whichever limit ends the run: ``max_steps``, ``max_epochs`` or ``max_time``.

    Lightning validates when it is asked to stop, so this asks after the last step. A request to stop in the middle of
    an accumulation window, by the clock or by early stopping, waits for the optimizer's step, because a checkpoint
    holds no gradients. It is a :class:`Checkpoint` so that Lightning puts it after its timer, and comes before the
    others, which act on its decision.
    """

    def __init__(self) -> None:
        self.put_off = False

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Asks Lightning to stop after the last step; all processes come to the same decision."""
        if trainer.fit_loop.epoch_loop._should_accumulate():
            self._put_off(trainer)
        elif self.put_off or _at_limit(trainer):
            trainer.should_stop = True

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Puts off what early stopping asks for."""
        if trainer.fit_loop.epoch_loop._should_accumulate():
            self._put_off(trainer)

    def _put_off(self, trainer: lightning.Trainer) -> None:
        self.put_off |= trainer.should_stop
        trainer.should_stop = False


def _at_limit(trainer: lightning.Trainer) -> bool:
    """Whether the step just taken is the last of ``max_steps`` or ``max_epochs``."""
    if 0 <= trainer.max_steps <= trainer.global_step:
        return True
    last_epoch = trainer.max_epochs is not None and 0 <= trainer.max_epochs <= trainer.current_epoch + 1
    return last_epoch and trainer.fit_loop.epoch_loop._num_ready_batches_reached()
