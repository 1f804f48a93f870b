"""Checks before an optimizer step that losses and gradients are finite, and that memory did not run out."""

import gc
from typing import NamedTuple

import torch
from torch import Tensor

from softsearch.data.dataset import Batch

_EXHAUSTED = ("DefaultCPUAllocator", "not enough memory")  # in errors on the CPU, which have no class of their own
_PLACEHOLDER_LENGTH = 8  # tokens


class StepRecord(NamedTuple):
    """A forward pass of the current step, on this process."""

    batch: Batch
    loss: Tensor  # per target token; NaN if memory ran out
    flags: Tensor  # [2], over all processes: above 0 if a loss is not finite, if memory ran out
    units: Tensor  # target tokens or sentences, the mean over all processes


class Fault(NamedTuple):
    """The reason why a step is skipped, the same on all processes."""

    loss: bool  # a loss is NaN or infinite
    gradient: bool  # the norm is NaN or infinite
    exhausted: bool  # memory ran out

    def __str__(self) -> str:
        """Returns the reasons as text."""
        reasons = ("the loss is not finite", "the gradient is not finite", "memory ran out")
        return " and ".join(reason for reason, holds in zip(reasons, self, strict=True) if holds)


class StepGuard:
    """Records the batches of one optimizer step: several with gradient accumulation.

    Flags are reduced over processes together with values that the training step reduces anyway. Nothing waits for the
    device until the step is due.
    """

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.fault: Fault | None = None  # of the last step
        self.stepped = False

    def note(self, record: StepRecord) -> None:
        """Adds a forward pass."""
        if self.stepped:
            self.records, self.fault, self.stepped = [], None, False
        self.records.append(record)

    def note_exhausted(self) -> None:
        """Records that memory ran out in the backward pass of the last batch."""
        last = self.records[-1]
        exhausted = torch.tensor([0.0, 1.0])
        self.records[-1] = last._replace(loss=torch.full_like(last.loss, torch.nan), flags=exhausted)

    def base(self, units: Tensor) -> Tensor:
        """Returns what the losses of this step's batches are divided by: the units of its first batch.

        ``units`` are those of a batch that is not noted yet.
        """
        return units if self.stepped or not self.records else self.records[0].units

    def weight(self, batches: int) -> Tensor:
        """Returns the factor of the gradients that makes them those of the mean over all units of the step.

        Gradients are sums over its batches of those of the loss divided by ``base``, and by ``batches``.
        """
        return batches * self.records[0].units / torch.stack([record.units for record in self.records]).sum()

    def may_step(self, gradient_norm: Tensor) -> bool:
        """Tells whether to take the step; needs one transfer from the device."""
        self.stepped = True
        overflow = (~gradient_norm.detach().isfinite()).float().reshape(1)
        flags = torch.stack([record.flags.to(overflow.device) for record in self.records]).sum(0)  # [2]
        loss, exhausted, gradient = (torch.cat((flags, overflow)) > 0).tolist()
        if loss or exhausted or gradient:
            # Gradients of a non-finite loss, or of an incomplete backward pass, do not count as another fault.
            self.fault = Fault(loss=loss, gradient=gradient and not (loss or exhausted), exhausted=exhausted)
        return self.fault is None


def out_of_memory(error: RuntimeError) -> bool:
    """Tells whether PyTorch failed to allocate memory."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in _EXHAUSTED)


def free_memory() -> None:
    """Frees the memory of a failed pass."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def placeholder_batch(batch: Batch) -> Batch:
    """Returns a small batch that uses all parameters: the beginning of one sentence pair."""
    src, tgt, features, _, links = batch
    return Batch(
        src[:1, :_PLACEHOLDER_LENGTH],
        tgt[:1, :_PLACEHOLDER_LENGTH],
        None if features is None else features[:1, :_PLACEHOLDER_LENGTH],
        links=None if links is None else links[:1, : _PLACEHOLDER_LENGTH - 1, :_PLACEHOLDER_LENGTH],
    )


def describe(batch: Batch) -> str:
    """Describes a batch's shape."""
    (pairs, src_len), tgt_len = batch.src_tokens.shape, batch.tgt_tokens.shape[1]
    return f"{pairs} pairs of up to {src_len} source and {tgt_len} target tokens"
