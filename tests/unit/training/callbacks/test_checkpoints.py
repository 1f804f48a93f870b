"""A run keeps its best, its last and its newest checkpoints, and finds them again when its folder was moved."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.precision import MixedPrecision
from lightning.pytorch.trainer.states import TrainerFn

from softsearch.training.callbacks.checkpoints import BestCheckpoint, EarlyStopping, LastCheckpoint
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from softsearch.training.faults.faulty_steps import FaultySteps
from tests.support.small_run import Terminate, assert_same_bits, best_of, files, fit


def step_of(path: Path) -> int:
    step: int = load_checkpoint(path)["global_step"]
    return step


def test_the_newest_are_kept_and_last_is_one_of_them(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "run", batches=16)
    assert files(tmp_path / "run") == ["best.ckpt", "last.ckpt", "step-12.ckpt", "step-16.ckpt", "step-8.ckpt"]
    folder = tmp_path / "run" / "checkpoints"
    assert [step_of(folder / f"step-{step}.ckpt") for step in (8, 12, 16)] == [8, 12, 16]
    assert (folder / "last.ckpt").samefile(folder / "step-16.ckpt")


def test_a_run_in_an_old_folder_keeps_none_of_the_old_run(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    for step in (2, 4, 600):
        (folder / f"step-{step}.ckpt").write_text("of another run")
    fit(tmp_path, tmp_path / "run", batches=8)
    assert files(tmp_path / "run") == ["best.ckpt", "last.ckpt", "step-4.ckpt", "step-8.ckpt"]
    assert step_of(folder / "step-4.ckpt") == 4


class Scored(Callback):
    """Gives validations their scores."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        pl_module.log("val/score", self.scores[trainer.global_step // 4 - 1])


def test_equal_scores_go_to_the_lower_loss_also_in_a_resumed_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"

    def trained(scores: Sequence[float], batches: int, resume: Path | None = None) -> tuple[int, BestCheckpoint]:
        best = BestCheckpoint(dirpath=run / "best", monitor="val/score", mode="max")
        fit(tmp_path, run, Scored(*scores), best, batches=batches, resume=resume)
        return step_of(run / "best" / "best.ckpt"), best

    step, _ = trained([0.0, 0.0], 8)
    assert step == 8  # the loss falls
    assert "val/score was 0 at all 2 validations" in caplog.text
    step, best = trained([0.0, 0.0, 0.0], 12, run / "checkpoints" / "last.ckpt")
    assert step == 12
    assert best.validated["val/loss"] == pytest.approx(float(best_of_loss(run)))
    assert "val/score was 0 at all 3 validations" in caplog.text
    caplog.clear()
    for scores, resumed in (([0.0, 0.5, 0.25], None), ([0.0, 0.5, 0.25, 0.1], run / "checkpoints" / "last.ckpt")):
        step, best = trained(scores, 4 * len(scores), resumed)
        assert step == 8
        assert best.validated["val/score"] == 0.5
    assert "at all" not in caplog.text


def best_of_loss(run: Path) -> Any:
    states = load_checkpoint(run / "checkpoints" / "last.ckpt")["callbacks"]
    return next(s for n, s in states.items() if n.startswith("BestCheckpoint") and "val/loss" in n)["best_model_score"]


@pytest.mark.parametrize(
    ("scores", "ended"),
    [
        ([0.0] * 9, None),
        ([1.0] * 9, None),
        ([0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.4], 6),  # counted from when it has moved
        ([0.5, 0.5, 0.5, 0.4, 0.5], 4),
        ([0.1, 0.2, 0.3, 0.2, 0.3], 4),
    ],
)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_metric_that_has_not_moved_ends_nothing(
    scores: list[float], ended: int | None, interrupted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stopping = EarlyStopping(monitor="val/score", mode="max", patience=2, check_on_train_epoch_end=False)
    stage: Any = SimpleNamespace(
        state=SimpleNamespace(fn=TrainerFn.FITTING),
        strategy=SimpleNamespace(reduce_boolean_decision=lambda decision, **_: decision),
        **dict.fromkeys(("sanity_checking", "fast_dev_run", "should_stop"), False),
        current_epoch=0,
    )
    found = None
    for number, score in enumerate(scores):
        stage.callback_metrics = {"val/score": torch.tensor(score)}
        stopping.on_validation_end(stage, stage)
        if interrupted:
            state = stopping.state_dict()
            stopping = EarlyStopping(monitor="val/score", mode="max", patience=2, check_on_train_epoch_end=False)
            stopping.load_state_dict(state)
        if stage.should_stop and found is None:
            found = number
    assert found == ended
    told = f"val/score was {scores[0]:.4g} at all 3 validations, so it cannot end the run; set monitor=val/loss"
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == [f"{told}, or another metric"] * (len({*scores[:3]}) == 1)


def test_a_moved_run_goes_on_and_improves_its_best(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "old", batches=8)
    old_score = load_checkpoint(tmp_path / "old/checkpoints/best.ckpt")["callbacks"]
    shutil.move(tmp_path / "old", tmp_path / "elsewhere" / "new")
    run = tmp_path / "elsewhere" / "new"
    trainer = fit(tmp_path, run, batches=16, resume=run / "checkpoints" / "last.ckpt")
    assert best_of(trainer).best_model_path == str(run / "checkpoints" / "best.ckpt")
    assert step_of(run / "checkpoints" / "best.ckpt") == 16
    before = next(state for name, state in old_score.items() if name.startswith("BestCheckpoint"))["best_model_score"]
    after = best_of(trainer).best_model_score
    assert after is not None
    assert after < before
    assert not (tmp_path / "old").exists()
    fit(tmp_path, tmp_path / "whole", batches=16)
    assert files(run) == files(tmp_path / "whole")
    assert_same_bits(run / "checkpoints" / "last.ckpt", tmp_path / "whole" / "checkpoints" / "last.ckpt")


def test_a_moved_run_keeps_a_best_that_is_not_beaten(tmp_path: Path) -> None:
    fit(tmp_path, tmp_path / "old", batches=8, mode="max")  # the loss falls, so the first validation is the best
    shutil.move(tmp_path / "old", tmp_path / "new")
    best = tmp_path / "new" / "checkpoints" / "best.ckpt"
    before = best.read_bytes()
    trainer = fit(tmp_path, tmp_path / "new", batches=12, mode="max", resume=best.with_name("last.ckpt"))
    assert best_of(trainer).best_model_path == str(best)
    assert best.read_bytes() == before
    assert step_of(best) == 4


@pytest.mark.parametrize("damage", ["truncated", "missing", "another folder"])
def test_a_lost_best_is_replaced_by_the_next(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    run = tmp_path / "run"
    fit(tmp_path, run, batches=8, mode="max")
    best, last = (run / "checkpoints" / name for name in ("best.ckpt", "last.ckpt"))
    if damage == "truncated":
        best.write_bytes(best.read_bytes()[:1000])
    elif damage == "missing":
        best.unlink()
    else:
        run = tmp_path / "another"
    trainer = fit(tmp_path, run, batches=12, mode="max", resume=last)
    assert "the best checkpoint so far cannot be read" in caplog.text
    assert best_of(trainer).best_model_path == str(run / "checkpoints" / "best.ckpt")
    assert step_of(run / "checkpoints" / "best.ckpt") == 12


def test_a_run_terminated_before_its_first_validation_finds_its_best_later(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(SystemExit):
        fit(tmp_path, run, Terminate(1))
    assert files(run) == ["last.ckpt"]
    fit(tmp_path, run, batches=4, resume=run / "checkpoints" / "last.ckpt")
    assert files(run) == ["best.ckpt", "last.ckpt", "step-4.ckpt"]


class PowerFailure(Callback):
    """Ends the run at a batch, as SIGKILL would: nothing is saved."""

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.datamodule.batches_trained == 10:  # type: ignore[attr-defined]
            raise RuntimeError("power failure")


def test_in_an_accumulation_window_the_last_checkpoint_waits_for_the_step(tmp_path: Path) -> None:
    """Validation comes after batches 4, 8 and 12, the optimizer's steps after 3, 6, 9, ..., over the ends of epochs."""
    with pytest.raises(RuntimeError, match="power failure"):
        fit(tmp_path, tmp_path / "cut", PowerFailure(), batches=18, accumulate=3)
    last = tmp_path / "cut" / "checkpoints" / "last.ckpt"
    assert load_checkpoint(last)["ParallelDataModule"]["batches_trained"] in (6, 9)
    fit(tmp_path, tmp_path / "cut", batches=18, accumulate=3, resume=last)
    fit(tmp_path, tmp_path / "whole", batches=18, accumulate=3)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    assert_same_bits(last, tmp_path / "whole" / "checkpoints" / "last.ckpt")


def test_nothing_is_saved_outside_of_training(tmp_path: Path) -> None:
    trainer = lightning.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    callback = LastCheckpoint(dirpath=tmp_path)
    callback.on_validation_end(trainer)
    assert not callback.due
    assert list(tmp_path.iterdir()) == []
    assert isinstance(BestCheckpoint(dirpath=tmp_path, monitor="val/bleu", mode="max"), Callback)


@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler.step")  # the scaler skips the first step
def test_float16_resumes_exactly_with_its_scale(tmp_path: Path) -> None:
    """float16 on the CPU, where Lightning offers none: the scaler's state is part of the checkpoint."""

    def part(run: Path, *callbacks: Callback, resume: Path | None = None) -> FaultySteps:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=5)
        plugins = [AtomicCheckpointIO(), MixedPrecision("16-mixed", "cpu", scaler)]
        steps = FaultySteps(folder=run)
        options: dict[str, Any] = {"plugins": plugins, "gradient_clip_val": 1.0}
        fit(tmp_path, run, steps, *callbacks, batches=40, resume=resume, **options)
        return steps

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with pytest.raises(SystemExit):
        part(cut, Terminate(29))
    last = cut / "checkpoints" / "last.ckpt"
    assert (
        part(cut, resume=last).summary() == part(whole).summary() == dict.fromkeys(FaultySteps(folder="").summary(), 0)
    )
    assert_same_bits(last, whole / "checkpoints" / "last.ckpt")
    found, expected = (load_checkpoint(run / "checkpoints" / "last.ckpt")["MixedPrecision"] for run in (cut, whole))
    assert found == expected
    assert 1 < found["scale"] < 2.0**40
