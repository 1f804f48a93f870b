"""Throughput, padding and memory of training."""

from time import perf_counter
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError
from softsearch.machine import peak_memory
from softsearch.training.interface import TrainingPart
from softsearch.training.lightning_internals import is_accumulating


class Throughput(TrainingPart, Callback):
    """Logs loss, learning rate, target tokens per second, padding and memory; ``summary`` is for the whole run.

    Validation counts as elapsed time, not as training time. The outside share is the part of training outside the
    forward pass, the backward pass and the optimizer's step. This callback comes first, so it does not time others.
    """

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        # Counts of the first process in the whole run; "busy" is also in seconds.
        names = ("tokens", "padded", "steps", "seconds", "busy", "elapsed", "peak_mb")
        self.counts: dict[str, float] = dict.fromkeys(names, 0.0)
        self.logged = dict(self.counts)  # the counts when metrics were last logged
        self.mark = self.last = 0.0  # when training started or continued, and when the last batch ended
        self.stepping = False

    def on_train_start(self, *_: Any) -> None:
        """Starts the clock."""
        self.mark = self.last = perf_counter()

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Restarts the clock."""
        self.mark = perf_counter()
        if not trainer.sanity_checking:
            self.counts["elapsed"] += self.mark - self.last
            self.last = self.mark
            self._note_memory()

    def on_before_backward(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """Adds the time of the forward pass, which began when training_step was called."""
        self.counts["busy"] -= pl_module.step_started

    def on_after_backward(self, *_: Any) -> None:
        """Adds the time of the backward pass."""
        self.counts["busy"] += perf_counter()

    def on_before_optimizer_step(self, *_: Any) -> None:
        """Starts timing the optimizer's step."""
        self.counts["busy"] -= perf_counter()
        self.stepping = True

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, _: Any, batch: Batch, *__: Any) -> None:
        """Counts the batch."""
        now = perf_counter()
        if self.stepping:
            self.counts["busy"] += now
            self.stepping = False
        self.counts["seconds"] += now - self.mark
        self.counts["elapsed"] += now - self.last
        self.mark = self.last = now
        self.counts["steps"] += 1
        self.counts["tokens"] += len(batch.target_places())
        self.counts["padded"] += batch.tgt_tokens[:, 1:].numel()
        if trainer.global_step % trainer.log_every_n_steps == 0 and not is_accumulating(trainer):  # type: ignore[attr-defined]
            self._log(trainer, pl_module)

    def state_dict(self) -> dict[str, Any]:
        """Returns the counts."""
        return {"counts": dict(self.counts), "logged": dict(self.logged)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting."""
        self.counts |= state_dict["counts"]
        self.logged |= state_dict["logged"]

    def on_fit_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Sums the counts over all processes, also if a resumed run had no step left to take."""
        device = trainer.strategy.root_device  # NCCL needs tensors there
        totals = torch.tensor([self.counts["tokens"], self.counts["padded"]], dtype=torch.int64, device=device)
        tokens, padded = trainer.strategy.reduce(totals, reduce_op="sum").tolist()
        if not self.counts["steps"]:
            return
        seconds = self.counts["seconds"]
        self.totals = {
            "train/tokens_per_second": tokens / seconds,
            "train/padding_efficiency": tokens / padded,
            "train/outside_share": 1 - self.counts["busy"] / seconds,
            "train/peak_memory_mb": self.counts["peak_mb"] or peak_memory_mb(),
            "train/seconds": seconds,
            "train/elapsed_seconds": self.counts["elapsed"],
            "train/steps": trainer.global_step,
        }

    def summary(self) -> dict[str, float]:
        """Returns speed, padding, memory and times of the whole run."""
        return self.totals

    def _note_memory(self) -> None:
        """Keeps the peak of all starts of the run: one that has no step left needs less."""
        self.counts["peak_mb"] = max(self.counts["peak_mb"], peak_memory_mb())

    def _log(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        tokens, padded, seconds = (self.counts[name] - self.logged[name] for name in ("tokens", "padded", "seconds"))
        self._note_memory()
        self.logged = dict(self.counts)
        logged = {f"train/{name}": value for name, value in sorted(pl_module.last_logged.items())}
        last = [value.to(pl_module.last_loss) for value in (pl_module.last_loss, pl_module.last_nll, *logged.values())]
        loss, nll, *values = trainer.strategy.reduce(torch.stack(last), reduce_op="mean").tolist()  # over all processes
        shown = {"train/loss": loss, "tokens/s": tokens / seconds * trainer.world_size, "lr": pl_module.step_rate}
        pl_module.log_dict(shown, prog_bar=True, rank_zero_only=True)
        used = {
            "train/nll": nll,
            "train/padding_efficiency": tokens / padded,
            "train/peak_memory_mb": self.counts["peak_mb"],
            "train/elapsed_seconds": self.counts["elapsed"],
        }
        if taken := logged.keys() & {*shown, *used}:
            raise ConfigError(f"the method or the loss logs {min(taken)}, which every run logs; give it another name")
        pl_module.log_dict(used | dict(zip(logged, values, strict=True)), rank_zero_only=True)


def peak_memory_mb() -> float:
    """Returns the peak memory of this process: that of the GPU if it uses one, otherwise resident memory."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    return peak_memory() / 2**20
