"""A terminated run saves where it stands and says with its exit code that it was terminated."""

import logging
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """Ends the process with 128 + the signal's number: 143 for SIGTERM, 130 for Ctrl-C."""


class Preemption(Callback):
    """On SIGTERM or SIGINT, all processes save a checkpoint at the next optimizer step and stop.

    A second signal ends the process at once.

    Args:
        path: the checkpoint to write.
    """

    def __init__(self, *, path: str | Path) -> None:
        self.path = Path(path)
        self.received = 0
        self.previous: dict[int, Any] = {}

    def setup(self, *_: Any, **__: Any) -> None:
        """Remembers who handled the signals before Lightning did."""
        self.previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def on_train_start(self, *_: Any) -> None:
        """Takes over the signals; the handler only notes them, for a collective inside it would hang."""
        for number in self.previous:
            signal.signal(number, self._note)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Stops at an optimizer step, when any process was asked to."""
        if trainer.fit_loop.epoch_loop._should_accumulate():  # in the middle of a window, gradients would be lost
            return
        if trainer.strategy.reduce_boolean_decision(bool(self.received), all=False):
            trainer.save_checkpoint(self.path)
            log.info("terminated: saved %s; continue with resume=auto", self.path)
            raise Preempted(128 + (self.received or signal.SIGTERM))

    def teardown(self, *_: Any, **__: Any) -> None:
        """Gives the signals back."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous.clear()

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received:
            os._exit(128 + number)
        self.received = number
