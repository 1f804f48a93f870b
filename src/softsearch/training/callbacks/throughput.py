"""How fast training is, and where the time goes."""

import resource
import sys
from time import perf_counter
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.data.batch import Batch
from softsearch.text.vocabulary import PAD

_COUNTED = ("tokens", "padded", "steps", "seconds", "busy", "logged_tokens", "logged_padded", "logged_seconds")


class Throughput(Callback):
    """Logs loss, rate, real target tokens per second, padding and memory; keeps the run's figures in :attr:`summary`.

    Validation does not count as training time. The share outside is what is left of it without the forward pass, the
    backward pass and the optimizer's step. It stands first in the list of callbacks, so that it times none of them.
    """

    def __init__(self) -> None:
        self.summary: dict[str, float] = {}
        self.tokens = self.padded = self.steps = 0
        self.seconds = self.busy = 0.0
        self.mark = self.logged_seconds = 0.0
        self.stepping = False
        self.logged_tokens = self.logged_padded = 0

    def on_train_start(self, *_: Any) -> None:
        """Starts the clock."""
        self.mark = perf_counter()

    def on_validation_end(self, *_: Any) -> None:
        """Starts it again."""
        self.mark = perf_counter()

    def on_before_backward(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """The forward pass is over: it began when training_step was called."""
        self.busy -= pl_module.step_started

    def on_after_backward(self, *_: Any) -> None:
        """The backward pass is over."""
        self.busy += perf_counter()

    def on_before_optimizer_step(self, *_: Any) -> None:
        """The optimizer's step begins."""
        self.busy -= perf_counter()
        self.stepping = True

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, _: Any, batch: Batch, *__: Any) -> None:
        """Counts the batch."""
        now = perf_counter()
        if self.stepping:
            self.busy += now
            self.stepping = False
        self.seconds += now - self.mark
        self.mark = now
        self.steps += 1
        targets = batch.tgt_tokens[:, 1:]
        self.tokens += int((targets != PAD).sum())
        self.padded += targets.numel()
        if trainer.global_step % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]  # set by a connector
            self._log(trainer, pl_module)

    def state_dict(self) -> dict[str, Any]:
        """What has been counted, with which a resumed run goes on; of the first process, as all count alike."""
        return {name: getattr(self, name) for name in _COUNTED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on with it: the summary is that of the whole run, but for what was lost with a killed process."""
        for name in _COUNTED:
            setattr(self, name, state_dict.get(name, 0))

    def on_fit_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Sums up, over all processes; also where a resumed run had no step left to do."""
        totals = torch.tensor([self.tokens, self.padded], device=trainer.strategy.root_device)  # where NCCL works
        tokens, padded = trainer.strategy.reduce(totals, reduce_op="sum").tolist()
        if not self.steps:
            return
        self.summary = {
            "train/tokens_per_second": tokens / self.seconds,
            "train/padding_efficiency": tokens / padded,
            "train/outside_share": 1 - self.busy / self.seconds,
            "train/peak_memory_mb": peak_memory_mb(),
            "train/seconds": self.seconds,
            "train/steps": trainer.global_step,
        }

    def _log(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        tokens = self.tokens - self.logged_tokens
        speed = tokens / (self.seconds - self.logged_seconds) * trainer.world_size
        efficiency = tokens / (self.padded - self.logged_padded)  # of this process, since the last line
        self.logged_tokens, self.logged_padded, self.logged_seconds = self.tokens, self.padded, self.seconds
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        loss = float(trainer.strategy.reduce(pl_module.last_loss, reduce_op="mean"))  # of the batches of all processes
        shown = {"train/loss": loss, "tokens/s": speed, "lr": rate}
        pl_module.log_dict(shown, prog_bar=True, rank_zero_only=True)
        used = {"train/padding_efficiency": efficiency, "train/peak_memory_mb": peak_memory_mb()}
        pl_module.log_dict(used, rank_zero_only=True)


def peak_memory_mb() -> float:
    """The most memory that this process has held: the GPU's if it uses one, else resident memory."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
