"""The moving average is what is validated and saved as the model's weights; training does not notice it."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor

from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.loss import SampledSoftmax
from softsearch.training.callbacks.ema import Ema
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.small_run import Terminate, assert_same_bits, fit, model_weights

DECAY = 0.6


class Shadow(Callback):
    """Computes the average by hand, and notes which weights a validation has, from its start to its end."""

    def __init__(self) -> None:
        self.average: dict[str, Tensor] = {}
        self.weights: dict[str, Tensor] = {}
        self.steps = 0
        self.validated: list[bool] = []

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any) -> None:
        self.weights = model_weights(pl_module)
        decay = min(DECAY, (1 + self.steps) / (10 + self.steps)) if self.steps else 0.0
        for name, weight in self.weights.items():
            self.average[name] = decay * self.average.get(name, weight) + (1 - decay) * weight
        self.steps += 1

    def on_validation_batch_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any
    ) -> None:
        self._compare(pl_module)

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._compare(pl_module)

    def _compare(self, module: lightning.LightningModule) -> None:
        self.validated.append(all(torch.allclose(w, self.average[n]) for n, w in model_weights(module).items()))


def checkpoint(run: Path, name: str = "last.ckpt") -> Path:
    return run / "checkpoints" / name


def test_the_average_is_validated_and_saved_and_the_weights_train_on(tmp_path: Path) -> None:
    shadow = Shadow()
    trainer = fit(tmp_path, tmp_path / "ema", Ema(decay=DECAY), shadow)
    fit(tmp_path, tmp_path / "plain")
    saved, plain = (load_checkpoint(checkpoint(tmp_path / run)) for run in ("ema", "plain"))
    assert shadow.steps == 12
    assert len(shadow.validated) >= 6
    assert all(shadow.validated)
    for name, weight in saved["state_dict"].items():
        torch.testing.assert_close(weight, shadow.average[name])
        assert torch.equal(saved["current_model_state"][name], plain["state_dict"][name])
    assert any(not torch.equal(weight, plain["state_dict"][name]) for name, weight in saved["state_dict"].items())
    # What evaluation, export and the final test take.
    weights = read_contents(checkpoint(tmp_path / "ema", "best.ckpt")).weights
    best = load_checkpoint(checkpoint(tmp_path / "ema", "best.ckpt"))
    assert all(torch.equal(weight, best["state_dict"][f"model.{name}"]) for name, weight in weights.items())
    module = trainer.lightning_module
    assert all(torch.equal(weight, saved["state_dict"][name]) for name, weight in module.state_dict().items())


@pytest.mark.parametrize(
    ("kill", "accumulate"), [(3, 1), (4, 3), *(pytest.param(kill, 1, marks=pytest.mark.nightly) for kill in (1, 5, 8))]
)
def test_resume_is_exact(tmp_path: Path, kill: int, accumulate: int) -> None:
    with pytest.raises(SystemExit):
        fit(tmp_path, tmp_path / "cut", Ema(decay=DECAY), Terminate(kill), accumulate=accumulate)
    fit(tmp_path, tmp_path / "cut", Ema(decay=DECAY), resume=checkpoint(tmp_path / "cut"), accumulate=accumulate)
    fit(tmp_path, tmp_path / "whole", Ema(decay=DECAY), accumulate=accumulate)
    for name in ("last.ckpt", "best.ckpt"):
        ours, theirs = (checkpoint(tmp_path / run, name) for run in ("cut", "whole"))
        assert_same_bits(ours, theirs, "current_model_state", "averaging_state")


def test_a_run_that_ends_before_its_first_validation_validates_the_average(tmp_path: Path) -> None:
    shadow = Shadow()
    fit(tmp_path, tmp_path / "run", Ema(decay=DECAY), shadow, batches=5, val_check_interval=1000)
    assert shadow.validated
    assert all(shadow.validated)
    saved = load_checkpoint(checkpoint(tmp_path / "run", "best.ckpt"))
    for name, weight in saved["state_dict"].items():
        torch.testing.assert_close(weight, shadow.average[name])


def test_words_in_buffers_are_not_averaged(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", Ema(decay=DECAY), loss=SampledSoftmax(tau=20))
    saved = load_checkpoint(checkpoint(tmp_path / "run"))
    assert saved["state_dict"]["loss.recent_words"].tolist() != list(range(20))
    assert torch.equal(saved["state_dict"]["loss.recent_words"], saved["current_model_state"]["loss.recent_words"])


class FailInValidation(Callback):
    """Ends the second validation with an error, and looks at the weights that are left to those who save then."""

    def __init__(self) -> None:
        self.trained: dict[str, Tensor] = {}
        self.left: dict[str, Tensor] = {}

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any) -> None:
        self.trained = model_weights(pl_module)

    def on_validation_epoch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.global_step == 8:
            raise RuntimeError("in a validation")

    def on_exception(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, _: BaseException) -> None:
        self.left = model_weights(pl_module)


def test_an_error_in_a_validation_leaves_the_trained_weights(tmp_path: Path) -> None:
    failing = FailInValidation()
    with pytest.raises(RuntimeError, match="in a validation"):
        fit(tmp_path, tmp_path / "run", Ema(decay=DECAY), failing)
    assert failing.left.keys() == failing.trained.keys()
    assert all(torch.equal(weight, failing.trained[name]) for name, weight in failing.left.items())


def test_training_on_without_the_average_is_refused(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", Ema(decay=DECAY), batches=4)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with (
        pytest.warns(UserWarning, match="Please add the following callbacks: \\['Ema'\\]"),
        pytest.raises(CheckpointError, match="resume with callbacks=ema"),
    ):
        fit(tmp_path, tmp_path / "copy", resume=checkpoint(tmp_path / "copy"))


@pytest.mark.filterwarnings("ignore:The checkpoint was not created with WeightAveraging")
def test_an_average_can_begin_in_a_resumed_run(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", batches=4)
    fit(tmp_path, tmp_path / "run", Ema(decay=DECAY), batches=8, resume=checkpoint(tmp_path / "run"))
    fit(tmp_path, tmp_path / "plain", batches=8)
    ours, theirs = (load_checkpoint(checkpoint(tmp_path / run)) for run in ("run", "plain"))
    assert all(torch.equal(ours["current_model_state"][name], w) for name, w in theirs["state_dict"].items())
    assert any(not torch.equal(ours["state_dict"][name], w) for name, w in theirs["state_dict"].items())


def test_split_models_are_refused() -> None:
    trainer: Any = SimpleNamespace(strategy=FSDPStrategy())
    with pytest.raises(ConfigError, match="trainer=fsdp splits them"):
        Ema().setup(trainer, lightning.LightningModule(), "fit")
