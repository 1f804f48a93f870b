"""Counts and reports skipped training steps, ends a run after too many, and warns of exploding losses."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.data.dataset import Batch
from softsearch.errors import SoftsearchError
from softsearch.models.loss import NoiseContrastive
from softsearch.text.vocabulary import PAD
from softsearch.training.faults.step_guard import Fault, StepRecord, describe
from softsearch.training.interface import TrainingPart
from softsearch.training.lightning_internals import is_accumulating

MAX_NONFINITE_STEPS, MAX_EXHAUSTED_STEPS = 5, 3  # consecutive skipped steps that end a run
_EXPLODED = 3.0  # times the loss of a uniform guess; R-Drop adds two losses

log = logging.getLogger(__name__)


class FaultySteps(TrainingPart, Callback):
    """Counts and reports the steps that the module skipped, and ends a run after too many in a row.

    A skipped step counts for the schedule and for ``trainer.max_steps``, and its batches count as trained; weights and
    optimizer state do not change. The counts are saved in checkpoints. The batch that ends a run is written to
    ``folder``.
    """

    def __init__(self, *, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.nonfinite = self.exhausted = 0  # skipped steps of the whole run
        self.nonfinite_in_a_row = self.exhausted_in_a_row = 0
        self.position = self.exploded = 0  # logged steps in a row whose loss is far above that of a uniform guess

    def summary(self) -> dict[str, float]:
        """Returns the counts, by the names of their metrics."""
        return {"train/nonfinite_steps": self.nonfinite, "train/out_of_memory_steps": self.exhausted}

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Remembers the number of batches trained so far."""
        self.position = trainer.datamodule.batches_trained  # type: ignore[attr-defined]  # set by fit

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, _: Any, batch: Batch, *__: Any) -> None:
        """Counts the step if it was skipped, and warns once of a loss that has exploded.

        Raises:
            SoftsearchError: too many steps in a row were skipped.
        """
        if is_accumulating(trainer):
            return
        fault: Fault | None = pl_module.guard.fault
        if fault is None:
            self.nonfinite_in_a_row = self.exhausted_in_a_row = 0
        else:
            nonfinite = fault.loss or fault.gradient
            self.nonfinite += nonfinite
            self.nonfinite_in_a_row += nonfinite
            self.exhausted += fault.exhausted
            self.exhausted_in_a_row += fault.exhausted
            self._report(trainer, fault, pl_module.guard.records)
        if trainer.global_step % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]  # set by a connector
            pl_module.log_dict(self.summary(), rank_zero_only=True)
            self._warn_of_explosion(trainer, pl_module, batch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the counts."""
        names = ("nonfinite", "exhausted", "nonfinite_in_a_row", "exhausted_in_a_row")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting."""
        vars(self).update((name, state_dict[name]) for name in self.state_dict())

    def _warn_of_explosion(self, trainer: lightning.Trainer, pl_module: Any, batch: Batch) -> None:
        """Warns once if the loss is far above that of a uniform guess, log V a token, at two logged steps in a row."""
        if self.exploded == 2 or isinstance(pl_module.loss, NoiseContrastive):  # not a choice among V words
            return
        words = pl_module.model.tgt_vocab_size
        per_unit = 1 if pl_module.loss.per == "token" else len(batch.target_places()) / len(batch.tgt_tokens)
        guess, loss = per_unit * math.log(words), float(pl_module.last_loss)
        self.exploded = self.exploded + 1 if loss > _EXPLODED * guess else 0
        if self.exploded == 2:
            log.warning(
                "step %d: the loss, %.4g, is far above that of a uniform guess among %d words, %.4g; set optimizer.lr "
                "below %.2g (debug=lr suggests a value)",
                trainer.global_step,
                loss,
                words,
                guess,
                trainer.optimizers[0].param_groups[0]["initial_lr"],
            )

    def _report(self, trainer: lightning.Trainer, fault: Fault, records: list[StepRecord]) -> None:
        """Logs this process's faulty batches, and ends the run after too many skipped steps in a row."""
        step, numbered = trainer.global_step, enumerate(records, start=self.position - len(records) + 1)
        faulty = [(number, record) for number, record in numbered if fault.gradient or not record.loss.isfinite()]
        for number, (batch, loss, *_) in faulty:
            log.warning(
                "step %d is skipped on all processes: %s; process %d, its batch %d: loss %.4g, %s",
                step,
                fault,
                trainer.global_rank,
                number,
                float(loss),
                describe(batch),
            )
        if self.exhausted_in_a_row >= MAX_EXHAUSTED_STEPS:
            raise SoftsearchError(
                f"memory ran out in {self.exhausted_in_a_row} steps in a row, the last of them step {step} with "
                f"{describe(records[-1].batch)} on this process; lower batching.tokens, and "
                "raise trainer.accumulate_grad_batches to keep the size of a step"
            )
        if self.nonfinite_in_a_row >= MAX_NONFINITE_STEPS:
            written = self._write(trainer, fault, faulty)
            raise SoftsearchError(
                f"the loss or the gradient was not finite in {self.nonfinite_in_a_row} steps in a row, the last of "
                f"them step {step}; expected finite numbers. {written}. The weights are those from before these steps. "
                "Look at that text; lower optimizer.lr, or set trainer.precision=32-true"
            )

    def _write(self, trainer: lightning.Trainer, fault: Fault, faulty: list[tuple[int, StepRecord]]) -> str:
        """Writes ``faulty``, this process's numbered faulty batches, and returns a sentence that says where."""
        if not faulty:
            return f"Another process writes the batch to {self.folder}"
        rank, step = trainer.global_rank, trainer.global_step
        prepared = trainer.datamodule.prepared  # type: ignore[attr-defined]  # set by fit
        batches = []
        for number, (batch, loss, *_) in faulty:
            src, tgt = ([[token for token in row if token != PAD] for row in tokens.tolist()] for tokens in batch[:2])
            pairs = [
                {
                    "source": prepared.src_tokenizer.decode(src_tokens),
                    "target": prepared.tgt_tokenizer.decode(tgt_tokens),
                    "src_tokens": src_tokens,
                    "tgt_tokens": tgt_tokens,
                }
                for src_tokens, tgt_tokens in zip(src, tgt, strict=True)
            ]
            batches.append({"batch": number, "loss": str(float(loss)), "pairs": pairs})
        path = self.folder / f"nonfinite-batch-step-{step}{f'-process-{rank}' if rank else ''}.json"
        text = json.dumps({"step": step, "fault": str(fault), "batches": batches}, ensure_ascii=False, indent=1)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
        return f"The batch is in {path}"
