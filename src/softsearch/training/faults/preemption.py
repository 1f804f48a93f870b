"""Preemption: on SIGTERM or Ctrl-C a run saves a checkpoint and exits with the signal's code."""

import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import lightning
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.trainer.states import TrainerFn

from softsearch.training.lightning_internals import (
    cluster_environment,
    is_accumulating,
    log_step_metrics,
    validates_next,
)

_SECONDS, _STEPS = 1.0, 50  # between two questions whether a process has received a signal
log = logging.getLogger(__name__)


class Preemption(Checkpoint):
    """On SIGTERM or SIGINT, all processes save a checkpoint at the next optimizer step and stop.

    Several processes agree on it about once a second, and at least every 50 steps, because each time they wait for one
    another.
    The exit code is 128 + the signal's number: 143 for SIGTERM, 130 for Ctrl-C. A validation due at that step, and
    the step's metrics, come first, so that a resumed run repeats nothing. A second signal ends the process at once.
    Under SLURM, the signal before the time limit (``--signal=SIGUSR1@90``) does the same and requeues the job;
    Lightning's own handler would save in the middle of a step. This callback must come last, so that it saves the
    changes made by the others.
    """

    def __init__(self, *, path: str | Path) -> None:
        self.path = Path(path)
        self.received = 0
        self.previous: dict[int, Any] = {}
        self.requeue_signal = 0
        self._interval = self._left = 1  # steps from one question to the next, and until then; equal in all processes
        self._asked = 0.0

    def setup(self, trainer: lightning.Trainer, *_: Any, **__: Any) -> None:
        """Remembers the signal handlers that were set before those of Lightning."""
        environment = cluster_environment(trainer)
        numbers: list[int] = [signal.SIGTERM, signal.SIGINT]
        if isinstance(environment, SLURMEnvironment) and environment.auto_requeue and environment.requeue_signal:
            self.requeue_signal = environment.requeue_signal
            numbers.append(self.requeue_signal)
        self.previous = {number: signal.getsignal(number) for number in numbers}
        if _has_parent(trainer):
            threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()

    def on_train_start(self, *_: Any) -> None:
        """Installs handlers that only record the signal, because a collective inside a handler would hang."""
        for number in self.previous:
            signal.signal(number, self._note)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Stops at an optimizer step if any process has received a signal."""
        if is_accumulating(trainer) or validates_next(trainer):  # the run stops after the validation
            return
        self._left -= 1
        if trainer.world_size > 1 and self._left > 0:
            return
        if number := self._agreed(trainer):
            log_step_metrics(trainer)
            self._stop(trainer, number)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Stops after a validation."""
        fitting = trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking
        if not fitting or is_accumulating(trainer):
            return
        if number := self._agreed(trainer):
            trainer.training = True  # so that Lightning closes training, not validation
            self._stop(trainer, number)

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Stops before the test; the last checkpoint already exists."""
        if number := self._agreed(trainer):
            self._stop(trainer, number, save=False)

    def teardown(self, *_: Any, **__: Any) -> None:
        """Restores the earlier handlers."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous.clear()

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received:
            os._exit(128 + number)
        self.received = number

    def _agreed(self, trainer: lightning.Trainer) -> int:
        """Returns the signal that any process has received; 0 for none."""
        if trainer.world_size == 1:
            return self.received
        now = time.monotonic()
        steps = (self._interval - max(self._left, 0)) / max(now - self._asked, 1e-6) * _SECONDS
        told = torch.tensor([self.received, -min(max(int(steps), 1), _STEPS)], device=trainer.strategy.root_device)
        number, interval = trainer.strategy.reduce(told, reduce_op="max").tolist()
        self._interval = self._left = -int(interval)
        self._asked = now
        return int(number)

    def _stop(self, trainer: lightning.Trainer, number: int, *, save: bool = True) -> None:
        if save:
            trainer.save_checkpoint(self.path)
            log.info("terminated: saved %s; continue with resume=auto", self.path)
        if number == self.requeue_signal and trainer.is_global_zero:
            _requeue()
        # If another process failed, Lightning would kill the process that started it before its logs are closed.
        raise SystemExit(0 if _has_parent(trainer) else 128 + number)


def _has_parent(trainer: lightning.Trainer) -> bool:
    """Tells whether Lightning, not a cluster, started this process from another one."""
    environment = cluster_environment(trainer)
    return trainer.local_rank > 0 and isinstance(environment, LightningEnvironment)


def _end_with_parent(parent: int) -> None:
    """Ends this process when its parent has ended, because it might wait for it in a collective forever."""
    while os.getppid() == parent:
        time.sleep(2.0)
    os._exit(1)


def _requeue() -> None:
    """Requeues the running SLURM job, under its own number."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array else os.environ["SLURM_JOB_ID"]
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        log.warning("SLURM job %s is not requeued: scontrol is not on PATH; start the job again yourself", job)
        return
    done = subprocess.run([scontrol, "requeue", job], capture_output=True, text=True, check=False)
    if done.returncode:
        log.warning("SLURM job %s is not requeued: %s; start the job again yourself", job, done.stderr.strip())
    else:
        log.info("requeued SLURM job %s", job)
