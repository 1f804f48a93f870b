"""Faults of a training step, and src/train.py with them: FAULTS='{"1": {"5": "nan"}}' is process 1 at its batch 5."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from softsearch.app.config.command import run
from softsearch.commands import CORE
from softsearch.data.dataset import Batch
from softsearch.models.loss import Loss
from softsearch.models.seq2seq import Seq2Seq
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.faults import preemption
from softsearch.training.interface import TrainingStep, teacher_forcing

HUGE = 1 << 50  # bytes: a petabyte is more than any machine maps


def exhaust(*_: Any) -> None:
    """Raises what PyTorch raises when memory runs out."""
    torch.empty(HUGE, dtype=torch.uint8)


def _nan(smoothed: Tensor, *_: Any) -> Tensor:
    return smoothed * torch.nan


def _infinite(smoothed: Tensor, *_: Any) -> Tensor:
    return smoothed + torch.inf  # whose gradient is finite


def _gradient(smoothed: Tensor, model: Seq2Seq, _: Batch) -> Tensor:
    return smoothed + torch.sqrt(0 * next(model.parameters()).sum())  # adds 0, with a gradient of 0 / 0


def _forward_memory(smoothed: Tensor, _: Seq2Seq, batch: Batch) -> Tensor:
    if len(batch.src_tokens) > 1:
        exhaust()
    return smoothed


def _backward_memory(smoothed: Tensor, *_: Any) -> Tensor:
    smoothed.register_hook(exhaust)
    return smoothed


LOSSES: dict[str, Callable[[Tensor, Seq2Seq, Batch], Tensor]] = {
    "nan": _nan,
    "infinite": _infinite,
    "gradient": _gradient,
    "forward-memory": _forward_memory,
    "backward-memory": _backward_memory,
}


def _kill() -> None:
    time.sleep(4)  # W&B writes in intervals, and late on a busy machine
    os.kill(os.getpid(), signal.SIGKILL)


def _exit() -> None:
    print(f"exits at {time.time()}", file=sys.stderr, flush=True)
    os._exit(7)


DEEDS: dict[str, Callable[[], Any]] = {
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sigint": lambda: os.kill(os.getpid(), signal.SIGINT),
    "sigusr1": lambda: os.kill(os.getpid(), signal.SIGUSR1),
    "sigkill": _kill,
    "exit": _exit,
    "hang": lambda: time.sleep(600),
}


def faulty(kind: str) -> Any:
    """A training method with a fault of ``LOSSES``."""

    def method(step: TrainingStep) -> tuple[Loss, Tensor]:
        found, tokens = teacher_forcing(step)
        return found._replace(smoothed=LOSSES[kind](found.smoothed, step.model, step.batch)), tokens

    return method


class Inject(Callback):
    """Injects faults at given batches of this process, counted from 0."""

    def __init__(self, faults: Mapping[int, str]) -> None:
        self.faults = faults

    def on_train_batch_start(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        kinds = self.faults.get(trainer.datamodule.batches_trained, "").split()  # type: ignore[attr-defined]
        pl_module.method = teacher_forcing
        for kind in kinds:
            if kind in DEEDS:
                DEEDS[kind]()
            else:
                pl_module.method = faulty(kind)


def train() -> None:
    """The training command with the faults of the environment."""
    plan = json.loads(os.environ["FAULTS"])
    ours = ExactResume.on_train_batch_start

    def start(self: ExactResume, trainer: lightning.Trainer, *rest: Any) -> None:
        ours(self, trainer, *rest)
        faults = {int(batch): kind for batch, kind in plan.get(str(trainer.global_rank), {}).items()}
        Inject(faults).on_train_batch_start(trainer, *rest)

    ExactResume.on_train_batch_start = start  # type: ignore[method-assign]
    preemption._SECONDS = 0.0  # processes ask each other at every step, so that tests know the step at which they end
    run(CORE["train"])


if __name__ == "__main__":
    train()
