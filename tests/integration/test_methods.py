"""Each training method and the plateau schedule in real runs, interrupted and not."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.app.config.composition import composed
from softsearch.app.results import read_metrics
from softsearch.app.train.train import train
from softsearch.text.noise import Noise
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.faults.preemption import Preemption
from softsearch.training.interface import TrainingMethod, teacher_forcing
from softsearch.training.objectives.guided_alignment import GuidedAlignment
from softsearch.training.objectives.minimum_risk import minimum_risk
from softsearch.training.objectives.r_drop import r_drop
from softsearch.training.objectives.scheduled_sampling import inverse_sigmoid, scheduled_sampling
from softsearch.training.optimizer.schedules import Plateau
from tests.support.commands import SMALL
from tests.support.small_run import small_data, small_module, small_trainer

pytestmark = pytest.mark.day

METHODS: dict[str, TrainingMethod] = {
    "teacher_forcing": teacher_forcing,
    "scheduled_sampling": partial(scheduled_sampling, decay=partial(inverse_sigmoid, k=4.0)),
    "r_drop": r_drop,
    "guided_alignment": GuidedAlignment(),
    "minimum_risk": partial(minimum_risk, utility=lambda ours, theirs: float(ours[:1] == theirs[:1]), samples=2),
}
STEPS, VALIDATION = 12, 3  # steps of a run, and between its validations
OPTIONS = (*SMALL, "trainer.precision=32-true", "trainer.max_steps=4", "trainer.val_check_interval=2")


class Run(NamedTuple):
    """The outcome of a run."""

    rates: dict[int, float]  # by step
    checkpoint: dict[str, Any]  # the last


class Watch(Callback):
    """Records the learning rate of every step and sends this process SIGTERM during one."""

    def __init__(self, kill: int) -> None:
        self.kill, self.rates = kill, dict[int, float]()

    def on_after_backward(self, trainer: lightning.Trainer, *_: Any) -> None:
        self.rates[trainer.global_step] = trainer.optimizers[0].param_groups[0]["lr"]
        if trainer.global_step == self.kill:
            os.kill(os.getpid(), signal.SIGTERM)


def fit(folder: Path, name: str, model: str, method: str, *, resume: Path | None = None, kill: int = -1) -> Run:
    """Trains with dropout under a plateau schedule; returns the rates used and the last checkpoint."""
    changes: dict[str, Any] = {"sampling": 0.3, "noise": Noise(typos=0.3)} if method == "guided_alignment" else {}
    data = small_data(folder, links="auto", **changes)
    # The loss falls, so that with mode=max each validation but the first is one too many.
    plateau = partial(Plateau, mode="max", patience=0, warmup_steps=2)
    module = small_module(data, model, dropout=0.3, scheduler=plateau, method=METHODS[method])
    watch, last = Watch(kill), folder / f"{name}.ckpt"
    trainer = small_trainer(STEPS, [ExactResume(seed=1), watch, Preemption(path=last)], val_check_interval=VALIDATION)
    torch.manual_seed(os.getpid() + kill)  # whatever the process did before must not matter
    if kill < 0:
        trainer.fit(module, datamodule=data, ckpt_path=resume)
        trainer.save_checkpoint(last)
    else:
        with pytest.raises(SystemExit) as ended:
            trainer.fit(module, datamodule=data, ckpt_path=resume)
        assert ended.value.code == 143
    return Run(watch.rates, load_checkpoint(last))


def assert_same_bits(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["state_dict"].keys() == expected["state_dict"].keys()
    for name, tensor in found["state_dict"].items():
        assert torch.equal(tensor, expected["state_dict"][name]), name


@pytest.mark.parametrize(
    ("model", "method", "kills"),
    [
        ("rnnsearch", "teacher_forcing", (1, VALIDATION - 1, 7)),  # in the warm-up, at a validation, between two
        ("rnnsearch", "scheduled_sampling", (7,)),
        ("rnnsearch", "r_drop", (7,)),
        ("transformer_tiny", "guided_alignment", (7,)),
        *(
            pytest.param(*pair, (7,), marks=pytest.mark.nightly)
            for pair in (
                ("rnnsearch", "minimum_risk"),
                ("transformer_tiny", "scheduled_sampling"),
                ("transformer_tiny", "r_drop"),
            )
        ),
    ],
)
def test_a_run_that_was_killed_ends_with_the_same_bits(
    model: str, method: str, kills: tuple[int, ...], tmp_path: Path
) -> None:
    """Fault: a run with another training method is killed. Effect: resuming is bit-identical, too."""
    rates, expected = fit(tmp_path, f"{model}-{method}", model, method)
    assert [rates[step] for step in range(STEPS)] == [0.005, *5 * [0.01], *3 * [0.005], *3 * [0.0025]]
    for kill in kills:
        name = f"{model}-{method}-{kill}"
        before, _ = fit(tmp_path, name, model, method, kill=kill)
        after, resumed = fit(tmp_path, f"{name}-resumed", model, method, resume=tmp_path / f"{name}.ckpt")
        assert before | after == rates
        assert min(after) == kill + 1
        assert_same_bits(resumed, expected)
        assert resumed["lr_schedulers"] == expected["lr_schedulers"]


def test_the_methods_differ(tmp_path: Path) -> None:
    """The comparison can fail, and every method has an effect, after two steps."""
    found = [fit(tmp_path, f"{method}-2", "rnnsearch", method, kill=1).checkpoint["state_dict"] for method in METHODS]
    for place, ours in enumerate(found):
        for theirs in found[:place]:
            assert any(not torch.equal(ours[name], theirs[name]) for name in ours)


def run_command(folder: Path, cache: Path, *options: str) -> dict[str, Any]:
    """Trains as ``src/train.py`` does, in this process, and returns the last checkpoint."""
    given = (*OPTIONS, f"run_dir={folder}", f"cache_dir={cache}", "name=test", *options)
    train(composed("train", *given))
    return load_checkpoint(folder / "checkpoints" / "last.ckpt")


@pytest.mark.parametrize(
    "options",
    [
        ("method=scheduled_sampling", "method.decay.k=2", "method.prediction=argmax"),
        *(
            pytest.param(("method=scheduled_sampling", *decay), marks=pytest.mark.nightly)
            for decay in (
                ("method/decay=linear", "method.decay.c=0.2", "method.decay.floor=0.1"),
                ("method/decay=exponential", "method.decay.k=0.5"),
            )
        ),
        ("method=r_drop", "model.encoder.dropout=0.3"),
        ("method=minimum_risk", "method.samples=2", "batching.sentences=2"),  # each of which is translated
        ("scheduler=cosine", "scheduler.warmup_steps=2", "scheduler.total_steps=4"),
    ],
    ids="-".join,
)
def test_the_command_resumes_from_a_validation(options: tuple[str, ...], tmp_path: Path) -> None:
    """Under the plateau schedule, whose memory of that validation must be in the checkpoint."""
    plateau = ("scheduler=plateau", "scheduler.monitor=val/chrf", "scheduler.patience=0", "scheduler.warmup_steps=1")
    options = options if "scheduler=cosine" in options else (*plateau, *options)
    whole = run_command(tmp_path / "whole", tmp_path / "cache", *options)
    run_command(tmp_path / "parts", tmp_path / "cache", *options, "trainer.max_steps=2")
    parts = run_command(tmp_path / "parts", tmp_path / "cache", *options, "resume=auto")
    assert parts["global_step"] == whole["global_step"] == 4
    assert_same_bits(parts, whole)
    assert parts["lr_schedulers"] == whole["lr_schedulers"]
    assert read_metrics(tmp_path / "parts")["test/loss"] == read_metrics(tmp_path / "whole")["test/loss"]
