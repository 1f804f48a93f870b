"""Recorded steps against plain ones; what is recorded is replayed on the CPU, operation by operation, as a GPU does."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from softsearch.data.dataset import Batch, find_real, pad
from softsearch.data.sampler import Batching
from softsearch.errors import ConfigError
from softsearch.models.layers import Dropout
from softsearch.models.loss import CrossEntropy, SampledSoftmax, StepContext
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, small_model
from softsearch.training.cuda_graphs import CudaGraphs, _Pass, obstacle
from softsearch.training.interface import TrainingMethod, TrainingPart, TrainingStep, teacher_forcing
from tests.support.other_device import moved, other_device
from tests.support.small_run import fit
from tests.support.synchronisations import Synchronisations

BATCHING = Batching(tokens=64, static_shapes=True)
MODELS = ["transformer_base", "rnnsearch", "lstm"]


class Recording(TorchDispatchMode):
    """Keeps all operations with their tensors, to do the same again on what these tensors then hold."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, found))
        return found

    def replay(self) -> None:
        with torch.no_grad():
            for func, args, kwargs, found in self.operations:
                for old, new in zip(tree_leaves(found), tree_leaves(func(*args, **kwargs)), strict=True):
                    if isinstance(old, Tensor) and old.untyped_storage().data_ptr() != new.untyped_storage().data_ptr():
                        old.copy_(new)


class Recorded(CudaGraphs):
    """Records on the CPU, after a pass that is not recorded."""

    def _record(self, run: Callable[[], None], device: torch.device) -> Callable[[], None]:
        with torch.random.fork_rng(devices=[]):
            run()
            with Recording() as recording:
                run()
        return recording.replay


def batch_of(*lengths: tuple[int, int]) -> Batch:
    """Random pairs of these numbers of tokens, EOS left out."""
    generator = torch.Generator().manual_seed(len(lengths))
    sides = zip(*lengths, strict=True)
    src, tgt = ([torch.randint(4, SRC_VOCAB, (n,), generator=generator).numpy() for n in side] for side in sides)
    tgt_tokens = pad(tgt, bos=True)
    return Batch(pad(src), tgt_tokens, None, find_real(tgt_tokens[:, 1:]))


BATCHES = [batch_of((7, 7), (3, 5), (1, 0)), batch_of((2, 6), (6, 1)), batch_of((12, 3), (9, 5)), batch_of((4, 4))]


def step(model: Seq2Seq, method: TrainingMethod, batch: Batch, seed: int = 0) -> list[Tensor]:
    """Loss, number of tokens and gradients, multiplied by 3."""
    torch.manual_seed(seed)
    model.zero_grad()
    summed, tokens = method(TrainingStep(model, CrossEntropy(), batch))
    (3 * summed.smoothed).backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [summed.smoothed.detach(), summed.nll, tokens, *gradients]


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_step_is_that_of_the_batch_without_padding(name: str) -> None:
    model, graphs = small_model(name).train(), Recorded(BATCHING.shape)
    for batch in BATCHES:
        torch.testing.assert_close(
            step(model, graphs, batch), step(model, teacher_forcing, batch), rtol=1e-10, atol=1e-12
        )
        with torch.no_grad():  # as an optimizer does
            for parameter in model.parameters():
                parameter += 0.01
    assert [*graphs.recorded] == [(8, 8, 8), (4, 16, 8)]


def test_gradients_are_added_to_those_that_are_there_and_frozen_weights_have_none() -> None:
    model, graphs = small_model("transformer_tiny").train(), Recorded(BATCHING.shape)
    frozen = next(model.encoder.layers.parameters())  # type: ignore[union-attr]
    frozen.requires_grad_(False)
    for batch in BATCHES[:2]:
        graphs(TrainingStep(model, CrossEntropy(), batch))[0].smoothed.backward()
    found = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    for batch in BATCHES[:2]:
        teacher_forcing(TrainingStep(model, CrossEntropy(), batch))[0].smoothed.backward()
    assert frozen.grad is None
    expected = [parameter.grad for parameter in model.parameters()]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_dropout_depends_on_the_seed_alone_not_on_what_was_recorded_when() -> None:
    def models() -> tuple[Seq2Seq, CudaGraphs]:
        model = small_model("transformer_tiny").train()
        for part in model.modules():
            if isinstance(part, Dropout):
                part.rate = 0.3
        return model, Recorded(BATCHING.shape)

    (model, graphs), (same, resumed) = models(), models()
    first, other, again = (step(model, graphs, BATCHES[0], seed) for seed in (1, 2, 1))
    assert first[0] != other[0]
    assert all(map(torch.equal, first, again))
    assert all(map(torch.equal, step(same, resumed, BATCHES[0], 2), other))


def test_autocast_weights_are_cast_in_every_step() -> None:
    model = small_model("transformer_tiny").float().train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    losses = []
    with torch.autocast("cpu", torch.bfloat16):
        for method in (Recorded(BATCHING.shape), teacher_forcing):
            for scale in (1.0, 3.0):
                model.load_state_dict({name: weight * scale for name, weight in before.items()})
                torch.clear_autocast_cache()
                losses.append(float(method(TrainingStep(model, CrossEntropy(), BATCHES[0]))[0].smoothed.detach()))
    assert losses[1] > 2 * losses[0]
    assert losses[:2] == pytest.approx(losses[2:], rel=1e-2)


@pytest.fixture
def device() -> Iterator[torch.device]:
    with other_device() as there:
        yield there


@pytest.mark.parametrize("name", MODELS)
def test_nothing_in_a_pass_waits_for_the_device(name: str, device: torch.device) -> None:
    one_pass = _Pass(moved(name), CrossEntropy(), BATCHING.shape(3, 8, 8), device, None)
    with Synchronisations() as counter:
        one_pass.read(Batch(*(part.to(device, non_blocking=True) for part in BATCHES[0][:2])))
        one_pass.run()
    assert not counter.found


class Growing(CrossEntropy):
    """A loss of somebody else's, whose smoothing grows from step to step."""

    def begin_step(self, step: StepContext) -> None:
        self.smoothing = 0.1 * step.number


class Same(CrossEntropy):
    """One that says that it stays the same."""

    varies_by_step = False


class Schedule(TrainingPart, Callback):
    """A callback that changes the loss."""

    varies_by_step = True


class Annealed(nn.Module):
    """A layer whose temperature falls."""

    varies_by_step = True


@pytest.mark.parametrize(
    ("loss", "callbacks", "layer", "expected"),
    [
        (CrossEntropy(), [], None, None),
        (Same(), [], None, None),
        (Growing(), [], None, "a Growing may change from step to step"),
        (SampledSoftmax(tau=5), [], None, "a SampledSoftmax may change"),
        (CrossEntropy(), [Schedule()], None, "a Schedule may change"),
        (CrossEntropy(), [], Annealed(), "a Annealed may change"),
    ],
    ids=["usual", "says_so", "loss", "sampled", "callback", "layer"],
)
def test_what_changes_from_step_to_step_is_not_recorded(
    loss: CrossEntropy, callbacks: list[Callback], layer: nn.Module | None, expected: str | None
) -> None:
    """On the CPU all other obstacles are taken away."""
    model = small_model("transformer_tiny")
    if layer is not None:
        model.encoder.add_module("further", layer)
    module = SimpleNamespace(model=model, loss=loss, method=teacher_forcing, device=torch.device("cuda"))
    data = SimpleNamespace(batching=BATCHING)
    trainer = SimpleNamespace(precision_plugin=None, world_size=1, precision="32", datamodule=data, callbacks=callbacks)
    found = obstacle(trainer, module)  # type: ignore[arg-type]
    assert found is None if expected is None else found is not None and expected in found


def test_a_loss_that_was_changed_in_silence_ends_the_run() -> None:
    loss, graphs = CrossEntropy(smoothing=0.1), Recorded(BATCHING.shape)
    step = TrainingStep(small_model("transformer_tiny").train(), loss, BATCHES[0], number=7)
    graphs(step)
    loss.smoothing = 0.2
    with pytest.raises(ConfigError, match=r"smoothing was 0\.1 .* and is 0\.2 in step 7; set cuda_graphs=false"):
        graphs(step)


class Record(Callback):
    """Has a run on the CPU recorded."""

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        pl_module.graphs = Recorded(BATCHING.shape)  # type: ignore[assignment]


def test_a_recorded_run_resumes_exactly(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train = partial(fit, tmp_path, accumulate=2)
    trainer = train(whole, Record(), batches=12)
    train(parts, Record(), batches=6)
    resumed = train(parts, Record(), batches=12, resume=parts / "checkpoints" / "last.ckpt")
    assert trainer.global_step == resumed.global_step == 6
    for ours, theirs in zip(*(t.lightning_module.parameters() for t in (trainer, resumed)), strict=True):
        assert torch.equal(ours, theirs)
    assert trainer.lightning_module.graphs is None


def test_a_run_that_cannot_have_graphs_says_why(caplog: pytest.LogCaptureFixture) -> None:
    from tests.unit.training.test_module import BATCHES as PAIRS
    from tests.unit.training.test_module import loader, make_module, make_trainer

    module = make_module(model="transformer_tiny")
    module.cuda_graphs = True
    with caplog.at_level(logging.WARNING):
        make_trainer(max_steps=1, num_sanity_val_steps=0).fit(module, loader(PAIRS), loader(PAIRS))
    assert "cuda_graphs=true has no effect: CUDA graphs need an NVIDIA GPU, but the run is on cpu" in caplog.text
