"""Steps that were skipped, for their loss or gradient was not finite or memory ran out: counted, and few in a row."""

import json
import logging
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.data.batch import Batch
from softsearch.errors import SoftsearchError
from softsearch.text.tokenizer import Tokenizer
from softsearch.text.vocabulary import PAD
from softsearch.training.faults.step_guard import Fault, StepRecord, describe

MOST_NONFINITE, MOST_EXHAUSTED = 5, 3  # steps in a row that end a run

log = logging.getLogger(__name__)


class FaultySteps(Callback):
    """Counts and reports the steps that the module skipped, and ends a run that skips too many in a row.

    A skipped step counts as a step, of the schedule and of ``trainer.max_steps`` too, and its batches as trained;
    weights and the optimizer's state stay as they are. The counts are part of checkpoints.

    Args:
        folder: the run's, where the batch is written that ends a run.
    """

    def __init__(self, *, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.nonfinite = self.exhausted = 0  # steps of the whole run
        self.nonfinite_in_a_row = self.exhausted_in_a_row = 0
        self.position = 0

    @property
    def summary(self) -> dict[str, float]:
        """The counts, by the names of their metrics."""
        return {"train/nonfinite_steps": self.nonfinite, "train/out_of_memory_steps": self.exhausted}

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Remembers which batch this is."""
        self.position = trainer.datamodule.batches_trained  # type: ignore[attr-defined]  # set by fit

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        """Counts the step if it was skipped.

        Raises:
            SoftsearchError: too many in a row.
        """
        if trainer.fit_loop.epoch_loop._should_accumulate():
            return
        fault: Fault | None = pl_module.guard.fault
        if fault is None:
            self.nonfinite_in_a_row = self.exhausted_in_a_row = 0
        else:
            self._count(fault)
            self._report(trainer, fault, pl_module.guard.seen)
            self._stop_at_too_many(trainer, fault, pl_module.guard.seen)
        if trainer.global_step % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]  # set by a connector
            pl_module.log_dict(self.summary, rank_zero_only=True)

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        names = ("nonfinite", "exhausted", "nonfinite_in_a_row", "exhausted_in_a_row")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on counting."""
        vars(self).update(state_dict)

    def _count(self, fault: Fault) -> None:
        if fault.loss or fault.gradient:
            self.nonfinite += 1
            self.nonfinite_in_a_row += 1
        if fault.exhausted:
            self.exhausted += 1
            self.exhausted_in_a_row += 1

    def _report(self, trainer: lightning.Trainer, fault: Fault, window: list[StepRecord]) -> None:
        for place in _offending(fault, window):
            log.warning(
                "step %d is skipped on all processes: %s; process %d, its batch %d: loss %.4g, %s",
                trainer.global_step,
                fault,
                trainer.global_rank,
                self._batch_number(place, window),
                float(window[place].loss),
                describe(window[place].batch),
            )

    def _stop_at_too_many(self, trainer: lightning.Trainer, fault: Fault, window: list[StepRecord]) -> None:
        step = trainer.global_step
        if self.exhausted_in_a_row >= MOST_EXHAUSTED:
            raise SoftsearchError(
                f"memory ran out in {self.exhausted_in_a_row} steps in a row, the last is step {step} with "
                f"{describe(window[-1].batch)} on this process; set batching.tokens to less, and "
                "trainer.accumulate_grad_batches to more for the same size of a step"
            )
        if self.nonfinite_in_a_row >= MOST_NONFINITE:
            written = self._write(trainer, fault, window)
            raise SoftsearchError(
                f"the loss or the gradient was not finite in {self.nonfinite_in_a_row} steps in a row, the last is "
                f"step {step}; expected finite numbers. {written}. The weights are those of before these steps. Look "
                "at that text; set optimizer.lr to less, or trainer.precision=32-true"
            )

    def _write(self, trainer: lightning.Trainer, fault: Fault, window: list[StepRecord]) -> str:
        """Writes this process's part in the step that ends the run, and says where."""
        places = _offending(fault, window)
        if not places:
            return f"Another process writes the batch to {self.folder}"
        rank, step = trainer.global_rank, trainer.global_step
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
        batches = [
            {
                "batch": self._batch_number(place, window),
                "loss": str(float(window[place].loss)),
                "pairs": _pairs(window[place].batch, tokenizers),
            }
            for place in places
        ]
        path = self.folder / f"nonfinite-batch-step-{step}{f'-process-{rank}' if rank else ''}.json"
        text = json.dumps({"step": step, "fault": str(fault), "batches": batches}, ensure_ascii=False, indent=1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
        return f"Its batch is in {path}"

    def _batch_number(self, place: int, window: list[StepRecord]) -> int:
        """How many batches this process had trained before the one at ``place`` of the step."""
        return self.position - (len(window) - 1 - place)


def _offending(fault: Fault, window: list[StepRecord]) -> list[int]:
    """The places of this process's batches that have the fault; none where it is another process's."""
    if fault.gradient:
        return list(range(len(window)))
    return [place for place, seen in enumerate(window) if not bool(seen.loss.isfinite())]


def _pairs(batch: Batch, tokenizers: tuple[Tokenizer, Tokenizer]) -> list[dict[str, Any]]:
    src, tgt = ([[token for token in row if token != PAD] for row in tokens.tolist()] for tokens in batch)
    read, write = tokenizers
    return [
        {"source": read.decode(s), "target": write.decode(t), "src_tokens": s, "tgt_tokens": t}
        for s, t in zip(src, tgt, strict=True)
    ]
