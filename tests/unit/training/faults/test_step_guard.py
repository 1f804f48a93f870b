"""Which steps may be taken, from what is known of their batches."""

import pytest
import torch

from softsearch.data.dataset import Batch
from softsearch.text.vocabulary import BOS, EOS
from softsearch.training.faults.step_guard import (
    Fault,
    StepGuard,
    StepRecord,
    describe,
    out_of_memory,
    placeholder_batch,
)

BATCH = Batch(torch.full((3, 12), 7), torch.tensor([[BOS, *[7] * 10, EOS]] * 3))
FINE, NORM = (0.0, 0.0), torch.tensor(2.0)


def guard_of(*found: tuple[float, float]) -> StepGuard:
    guard = StepGuard()
    for numbers in found:
        guard.note(StepRecord(BATCH, torch.tensor(1.0), torch.tensor(numbers), torch.tensor(5.0)))
    return guard


def test_a_sound_step_may_be_taken() -> None:
    guard = guard_of(FINE, FINE)
    assert guard.may_step(NORM)
    assert guard.fault is None


@pytest.mark.parametrize(
    ("found", "norm", "fault"),
    [
        ([(0.5, 0.0)], NORM, Fault(loss=True, gradient=False, exhausted=False)),  # one of two processes
        ([FINE, (0.0, 1.0), FINE], NORM, Fault(loss=False, gradient=False, exhausted=True)),
        ([(1.0, 0.0), (0.0, 0.5)], torch.tensor(torch.nan), Fault(loss=True, gradient=False, exhausted=True)),
        ([FINE], torch.tensor(torch.inf), Fault(loss=False, gradient=True, exhausted=False)),
        ([FINE], torch.tensor(torch.nan), Fault(loss=False, gradient=True, exhausted=False)),
    ],
)
def test_one_fault_anywhere_forbids_it(found: list[tuple[float, float]], norm: torch.Tensor, fault: Fault) -> None:
    guard = guard_of(*found)
    assert not guard.may_step(norm)
    assert guard.fault == fault


def test_the_next_step_starts_afresh() -> None:
    guard = guard_of((1.0, 0.0))
    assert not guard.may_step(NORM)
    assert len(guard.records) == 1
    guard.note(StepRecord(BATCH, torch.tensor(1.0), torch.tensor(FINE), torch.tensor(5.0)))
    assert guard.fault is None
    assert len(guard.records) == 1
    assert guard.may_step(NORM)


def test_memory_that_runs_out_in_the_backward_pass_is_that_of_the_last_batch() -> None:
    guard = guard_of(FINE, FINE)
    guard.note_exhausted()
    assert [bool(record.flags[1]) for record in guard.records] == [False, True]
    assert bool(guard.records[1].loss.isnan())
    assert not guard.may_step(NORM)
    assert guard.fault == Fault(loss=False, gradient=False, exhausted=True)


def test_faults_in_words() -> None:
    assert str(Fault(loss=True, gradient=False, exhausted=True)) == "the loss is not finite and memory ran out"


def test_what_pytorch_says_of_memory_is_recognised() -> None:
    with pytest.raises(RuntimeError) as real:
        torch.empty(1 << 50, dtype=torch.uint8)
    assert out_of_memory(real.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_the_stand_in_is_the_beginning_of_one_pair() -> None:
    short = placeholder_batch(BATCH)
    assert short.src_tokens.shape == (1, 8)
    assert torch.equal(short.tgt_tokens, BATCH.tgt_tokens[:1, :8])
    assert describe(BATCH) == "3 pairs of up to 12 source and 12 target tokens"
