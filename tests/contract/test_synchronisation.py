"""A training step of every model on a device that is not the CPU: the program does not wait for the device."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from lightning.fabric.utilities import move_data_to_device

from softsearch.data.dataset import Batch, find_real
from softsearch.models.loss import CrossEntropy, SampledSoftmax
from softsearch.training.faults.step_guard import StepGuard, StepRecord
from softsearch.training.interface import TrainingMethod, TrainingStep, teacher_forcing
from softsearch.training.objectives.r_drop import r_drop
from softsearch.training.objectives.scheduled_sampling import exponential, scheduled_sampling
from softsearch.training.optimizer.lazy_adam import clip_by_norm
from tests.contract.test_other_device import SRC, TGT
from tests.support.models import every_model
from tests.support.other_device import There, moved, other_device
from tests.support.synchronisations import Synchronisations

BATCH = Batch(SRC, TGT, None, find_real(TGT[:, 1:]))
GUARD = {"tolist": 1}  # once for each optimizer step, whether to take it: weights must not become NaN
CLASSES = {"aten.bincount": 1, "tolist": 1}  # loss=class_factored: the words of each class are a product of their own


@pytest.fixture
def device() -> Iterator[torch.device]:
    with other_device() as there:
        yield there


def step(
    case: tuple[str, ...], loss: CrossEntropy, method: TrainingMethod, device: torch.device, batch: Batch = BATCH
) -> dict[str, int]:
    """The synchronisations of a step as ``TranslationModule`` takes it."""
    model, loss = moved(*case), loss.to(device)
    # A fused optimizer needs a device that it knows; this one launches more kernels and waits as little.
    optimizer, guard = torch.optim.Adam(model.parameters(), foreach=True, capturable=False), StepGuard()
    with Synchronisations() as counter:
        here = move_data_to_device(batch, device)
        summed, tokens = method(TrainingStep(model, loss, here, number=1))
        value = summed.smoothed / tokens
        flags = torch.stack(((~value.detach().isfinite()).float(), torch.full_like(tokens, 0).float()))
        guard.note(StepRecord(here, value.detach(), flags, tokens))
        value.backward()
        assert guard.may_step(clip_by_norm(model.parameters(), 1.0))
        optimizer.step()
        assert isinstance(summed.nll, There)
        assert all(isinstance(parameter.grad, There) for parameter in model.parameters())
        optimizer.zero_grad()
    return dict(counter.found)


@pytest.mark.parametrize("case", [case for case in every_model() if case.id != "ngram"])  # which is counted
def test_a_step_waits_once(case: tuple[str, ...], device: torch.device) -> None:
    more = CLASSES if "loss=class_factored" in case else {}
    expected = {name: GUARD.get(name, 0) + more.get(name, 0) for name in {*GUARD, *more}}
    assert step(case, CrossEntropy(), teacher_forcing, device) == expected


METHODS: list[Any] = [
    r_drop,
    partial(scheduled_sampling, decay=partial(exponential, k=0.5), prediction="sample"),
    partial(scheduled_sampling, decay=partial(exponential, k=0.5), prediction="argmax"),
]


@pytest.mark.parametrize("method", METHODS, ids=["r_drop", "sample", "argmax"])
def test_so_does_one_of_other_methods(method: TrainingMethod, device: torch.device) -> None:
    assert step(("rnnsearch",), CrossEntropy(), method, device) == GUARD


def test_a_step_that_waits_more_is_seen(device: torch.device) -> None:
    unprepared = BATCH._replace(places=None)
    assert step(("rnnsearch",), CrossEntropy(), teacher_forcing, device, unprepared) == GUARD | {"aten.nonzero": 1}
    sampled = step(("transformer_tiny", "model.embeddings.tie=none"), SampledSoftmax(tau=10), teacher_forcing, device)
    assert sampled.keys() > GUARD.keys()


def test_what_waits(device: torch.device) -> None:
    there = torch.ones(3, device=device)
    for operation in (
        lambda: there.sum().item(),
        lambda: bool(there.sum() > 0),
        lambda: float(there[0]),
        lambda: there.cpu(),
        lambda: there[there > 0],
        lambda: there.masked_select(there > 0),
        lambda: torch.ones(3).to(device),
        lambda: there[torch.arange(2)],
        lambda: there.long().unique(),
        lambda: there.repeat_interleave(there.long()),
        lambda: there.tolist(),
    ):
        with Synchronisations() as counter:
            operation()
        assert counter.found.total() >= 1
    with Synchronisations() as counter:
        torch.ones(3).to(device, non_blocking=True) + there[there.long().clamp(max=2)] * there.where(there > 0, 0)
    assert not counter.found
