"""A state of training that cannot be restored is the file's fault, and said so, mostly before anything is restored."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import optim

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.validation import read_options
from softsearch.app.train.resume import check_unchanged, checkpoint_to_resume, restoring
from softsearch.app.train.run_folder import check_folder
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.loss import SampledSoftmax
from softsearch.training.callbacks.checkpoints import BestCheckpoint, EarlyStopping, LastCheckpoint
from softsearch.training.callbacks.ema import Ema
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.training_state import state_mismatch
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.optimizer.lazy_adam import LazyAdam
from softsearch.training.optimizer.muon import Muon
from softsearch.training.optimizer.schedules import Plateau
from tests.support.small_run import fit, small_data, small_module, small_trainer
from tests.support.written import CONFIG, save_unchecked, tokenizers

Misfit = Callable[[dict[str, Any]], str | None]
SURPLUS, MISSING = object(), object()
OPTIMIZERS: dict[str, Any] = {
    "adam": partial(optim.Adam, lr=0.01, fused=True),
    "amsgrad": partial(optim.Adam, amsgrad=True),
    "adamw": partial(optim.AdamW, fused=True),
    "adadelta": optim.Adadelta,
    "adagrad": optim.Adagrad,
    "momentum": partial(optim.SGD, momentum=0.9),
    "lazy_adam": LazyAdam,
    "muon": partial(Muon, bfloat16=False),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a run of four steps."""
    folder = tmp_path_factory.mktemp("run")
    fit(folder, folder / "run", batches=4)
    return folder


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Misfit]:
    """A checkpoint of a run with much state, and what compares another one with a new run like it."""
    return trained(tmp_path_factory.mktemp("full"), OPTIMIZERS["adam"])


def trained(folder: Path, optimizer: Any) -> tuple[dict[str, Any], Misfit]:
    """As the fixture ``full`` has it, of a run with an optimizer."""
    data = small_data(folder)

    def build(steps: int) -> tuple[Any, Any]:
        callbacks = [
            Throughput(),
            Ema(),
            FaultySteps(folder=folder),
            EarlyStopping(monitor="val/loss", check_on_train_epoch_end=False),
            BestCheckpoint(dirpath=folder, monitor="val/loss", mode="min"),
            LastCheckpoint(dirpath=folder),
            SaveOrigin(CONFIG, tokenizers()),
        ]
        parts = {"optimizer": optimizer, "scheduler": Plateau, "loss": SampledSoftmax(tau=20)}
        return small_trainer(steps, callbacks), small_module(data, **parts)

    trainer, module = build(4)
    trainer.fit(module, datamodule=data)
    trainer, module = build(8)
    return load_checkpoint(folder / "last.ckpt"), partial(state_mismatch, module=module)


def changed(checkpoint: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at a place; a part of a callback's name stands for all of it."""
    node = checkpoint = copy.deepcopy(checkpoint)
    *parents, last = place
    for key in parents:
        node = node[next(k for k in node if k.startswith(key)) if node is checkpoint["callbacks"] else key]
    if value is MISSING:
        del node[last]
    elif value is SURPLUS:
        node[last] |= {"increment_ready": 3, "optimizer": 3}
    else:
        node[last] = value
    return checkpoint


MOMENT, STEP = (("optimizer_states", 0, "state", 0, name) for name in ("exp_avg", "step"))
RATES = ("optimizer_states", 0, "param_groups", 0)


@pytest.mark.parametrize(
    "place",
    [
        *[
            (MOMENT, value)
            for value in (
                torch.zeros(1),
                torch.zeros(0),
                torch.zeros(1, 1).expand(60, 8),
                torch.zeros(8, 60).t(),
                torch.eye(60, 8).to_sparse(),
                torch.zeros(60, 8, dtype=torch.int64),
                torch.zeros(60, 8, device="meta"),
                "x",
                None,
                MISSING,
            )
        ],
        (STEP, torch.tensor([1.0, 2.0])),
        ((*RATES, "params"), [0] * 33),
        (("optimizer_states", 0, "state"), []),
        (("current_model_state", "model.encoder.embedding.weight"), torch.zeros(2)),
        (("state_dict", "loss.recent_words"), torch.full((20,), -1)),
    ],
    ids=lambda case: f"{case[0][-1]}",
)
def test_what_a_fresh_run_would_not_have_is_refused_before_it_is_restored(
    place: tuple[tuple[Any, ...], Any], full: tuple[dict[str, Any], Misfit], tmp_path: Path
) -> None:
    """Fault: `resume=FILE` with an optimizer state that does not fit the weights, or counts out of range.

    Effect: refused before anything is restored.
    """
    checkpoint, mismatch = full
    save_unchecked(changed(checkpoint, *place), tmp_path / "bad.ckpt")
    with pytest.raises(CheckpointError, match=r"bad\.ckpt") as refused:
        check_unchanged(tmp_path / "bad.ckpt", CONFIG, mismatch)
    assert len(str(refused.value)) < 800


def test_a_run_of_another_model_is_named_in_a_few_lines(run: Path) -> None:
    other = {"name": "other", "model": {f"key{i}": i for i in range(9)}, "trainer": {"default_root_dir": "x"}}
    with pytest.raises(CheckpointError, match=r"\d+ options of model.*such as model=\S+ in place of other") as refused:
        check_unchanged(run / "run" / "checkpoints" / "last.ckpt", other, lambda _: "no weights")
    assert not {"key3", "default_root_dir"} & {*refused.value.args[0].replace(",", " ").replace(".", " ").split()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_every_optimizer_is_compared(name: str, tmp_path: Path) -> None:
    checkpoint, mismatch = trained(tmp_path, OPTIMIZERS[name])
    assert mismatch(checkpoint) is None
    state = checkpoint["optimizer_states"][0]["state"][0]
    for key in state:
        for value in (torch.zeros(7), "x"):
            assert mismatch(changed(checkpoint, ("optimizer_states", 0, "state", 0, key), value)) is not None
    missing = changed(checkpoint, ("optimizer_states", 0, "state", 0, [*state][-1]), MISSING)
    assert "this optimizer" in (mismatch(missing) or "")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("optimizer_states", [3]),
        ("optimizer_states", [{"state": {0: "x"}, "param_groups": []}]),
        ("lr_schedulers", "x"),
        ("loops", "x"),
        ("callbacks", 3),
        ("state_dict", {}),
        ("pytorch-lightning_version", 3),
        ("ParallelDataModule", {}),
        ("ParallelDataModule", {"batches_trained": "x", "data_fingerprint": 3, "world_size": None}),
    ],
)
def test_a_malformed_state_of_training_is_one_message(part: str, value: Any, run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(run / "run" / "checkpoints" / "last.ckpt")
    assert part in checkpoint
    path = tmp_path / "bad.ckpt"
    save_unchecked({**checkpoint, part: value}, path)
    with pytest.raises(CheckpointError) as refused, restoring(path):
        fit(run, tmp_path / "again", batches=8, resume=path)
    assert len(str(refused.value)) < 800


def test_a_run_that_early_stopping_has_ended_is_resumed(tmp_path: Path) -> None:
    """Without a further step; with more patience it trains on."""

    def stopping(patience: int) -> list[Callback]:
        scores = ModelCheckpoint(dirpath=tmp_path / "also", monitor="val/loss", save_top_k=2)
        return [EarlyStopping(monitor="val/loss", patience=patience, min_delta=1e3), scores]

    assert fit(tmp_path, tmp_path / "run", *stopping(1), batches=40).global_step == 8
    path, data = tmp_path / "run" / "checkpoints" / "last.ckpt", small_data(tmp_path)
    module = small_module(data)
    check_unchanged(path, CONFIG, partial(state_mismatch, module=module))
    for patience, steps in ((1, 8), (2, 12)):
        assert fit(tmp_path, tmp_path / "on", *stopping(patience), batches=40, resume=path).global_step == steps


def test_a_good_one_is_restored_and_other_errors_are_not_the_file_s(run: Path, tmp_path: Path) -> None:
    path = run / "run" / "checkpoints" / "last.ckpt"
    with restoring(path):
        assert fit(run, tmp_path / "again", batches=8, resume=path).global_step == 8
    for error in (KeyError("x"), ConfigError("y")):
        with pytest.raises(type(error)), restoring(path):
            raise error


def test_a_run_is_named_by_its_folder(run: Path, tmp_path: Path) -> None:
    last = run / "run" / "checkpoints" / "last.ckpt"
    for folder in (run / "run", last.parent):
        assert checkpoint_to_resume(folder, tmp_path) == last
    with pytest.raises(CheckpointError, match="is a folder without checkpoints; set resume to the folder of a run"):
        checkpoint_to_resume(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("left", "options", "problem"),
    [
        (
            "checkpoints/step-4.ckpt",
            "",
            r"already has a run \(checkpoints/step-4.ckpt\); .*resume=auto .* overwrite=true",
        ),
        ("metrics.json", "resume=OTHER/last.ckpt", r"already has a run \(metrics.json\)"),
        ("metrics.csv", "", None),  # a run that was killed before it had a checkpoint
        ("evaluate/report.json", "", None),
        ("metrics.json", "resume=auto", None),
        ("metrics.json", "resume=RUN/checkpoints/last.ckpt", None),
        ("metrics.json", "resume=RUN", None),
        ("metrics.json", "overwrite=true", None),
        ("metrics.json", "overwrite=true resume=auto", "overwrite=true removes the run that resume=auto continues"),
        (
            "metrics.json",
            "overwrite=true init=RUN/checkpoints/best.ckpt",
            "init=.*best.ckpt is in the run that overwrite",
        ),
        ("metrics.json", "overwrite=true init=RUN", "init=.*run is in the run that overwrite"),
        ("metrics.json", "overwrite=true init=OTHER/best.ckpt", None),
    ],
)
def test_folders_of_other_runs(left: str, options: str, problem: str | None, tmp_path: Path) -> None:
    """Fault: a folder that already has a run, without `resume`.

    Effect: refused, and nothing in it changes; `overwrite=true` removes the old run.
    """
    (tmp_path / "run" / left).parent.mkdir(parents=True)
    (tmp_path / "run" / left).touch()
    typed = options.replace("RUN", str(tmp_path / "run")).replace("OTHER", str(tmp_path / "other")).split()
    config = composed("train", "model=gru", *typed, f"run_dir={tmp_path / 'run'}", "name=x")
    if problem is None:
        check_folder(read_options(config, Train))
    else:
        with pytest.raises(ConfigError, match=problem):
            check_folder(read_options(config, Train))
