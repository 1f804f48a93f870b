"""Whether an optimizer step can be taken: its losses and gradients are finite, and memory sufficed for its batches."""

import gc
from typing import NamedTuple

import torch
from torch import Tensor

from softsearch.data.batch import Batch

_EXHAUSTED = ("DefaultCPUAllocator", "not enough memory")  # what PyTorch says on the CPU, where it has no class for it
_SHORT = 8  # tokens


class StepRecord(NamedTuple):
    """A batch of the running step, on this process."""

    batch: Batch
    loss: Tensor  # of a target token; NaN where memory ran out
    exhausted: bool  # memory ran out


class Fault(NamedTuple):
    """Why a step is skipped; the same on all processes."""

    loss: bool  # one is NaN or infinite
    gradient: bool  # its norm is
    exhausted: bool  # memory ran out

    def __str__(self) -> str:
        """For a sentence that goes on with what was done about it."""
        reasons = ("the loss is not finite", "the gradient is not finite", "memory ran out")
        return " and ".join(reason for reason, holds in zip(reasons, self, strict=True) if holds)


class StepGuard:
    """Collects what is known of the batches of one optimizer step, which are several where gradients are accumulated.

    What one process finds is known to all through a reduction that the training step needs anyway. Nothing here waits
    for the device until the step is due.
    """

    def __init__(self) -> None:
        self.seen: list[StepRecord] = []
        self.found: list[Tensor] = []  # [2] each: more than 0 where a loss is not finite, where memory ran out
        self.fault: Fault | None = None  # of the last step
        self.stepped = False

    def note(self, seen: StepRecord, found: Tensor) -> None:
        """Takes note of a forward pass, and of what all processes found in theirs."""
        if self.stepped:
            self.seen, self.found, self.fault, self.stepped = [], [], None, False
        self.seen.append(seen)
        self.found.append(found)

    def note_exhausted(self) -> None:
        """Takes note that memory ran out in the backward pass of the last batch."""
        last = self.seen[-1]
        self.seen[-1] = StepRecord(last.batch, torch.full_like(last.loss, torch.nan), exhausted=True)
        self.found[-1] = torch.tensor([0.0, 1.0])

    def may_step(self, gradient_norm: Tensor) -> bool:
        """Whether to take the step; one number is read from the device."""
        self.stepped = True
        overflow = (~gradient_norm.detach().isfinite()).float().reshape(1)
        found = torch.stack([f.to(overflow.device) for f in self.found]).sum(0)  # [2]
        flags = (torch.cat((found, overflow)) > 0).tolist()
        if any(flags):
            # Gradients of a loss that is not finite, or of half a backward pass, say nothing of their own.
            self.fault = Fault(loss=flags[0], gradient=flags[2] and not any(flags[:2]), exhausted=flags[1])
        return self.fault is None


def out_of_memory(error: RuntimeError) -> bool:
    """Whether PyTorch could not allocate what it needed."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in _EXHAUSTED)


def free_memory() -> None:
    """Gives back what a failed pass has left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def stand_in(batch: Batch) -> Batch:
    """The beginning of one sentence pair: a batch for which memory suffices, and which reaches all parameters."""
    return Batch(batch.src_tokens[:1, :_SHORT], batch.tgt_tokens[:1, :_SHORT])


def describe(batch: Batch) -> str:
    """The shape of a batch, in words."""
    (pairs, src_len), tgt_len = batch.src_tokens.shape, batch.tgt_tokens.shape[1]
    return f"{pairs} pairs of up to {src_len} source and {tgt_len} target tokens"
