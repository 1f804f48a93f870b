"""Checkpoints under faults."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from softsearch.training.checkpoints.folder import newest_resumable
from tests.support.commands import SERVER, SMALL, run
from tests.support.small_run import assert_same_bits, files, fit
from tests.support.written import Payload, by_hand


def saving(what: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a part of tests/faults/saving.py."""
    return SERVER.run(["tests.faults.saving", what, str(folder)], env=environment)


def test_sigkill_at_any_time_leaves_a_valid_checkpoint(tmp_path: Path) -> None:
    """Fault: SIGKILL while a checkpoint is written. Effect: the newest complete checkpoint loads."""
    done = saving("sigkill", tmp_path)
    assert done.returncode == 0, done.stderr
    told = re.fullmatch(r"20 kills, (\d+) of them in a save, (\d+) saves", done.stdout.strip())
    assert told, done.stdout
    assert int(told[1]) > 0
    assert int(told[2]) > 0


def test_a_full_disk_leaves_the_old_checkpoints_and_says_so(tmp_path: Path) -> None:
    """Fault: a full disk. Effect: an error; the old checkpoints stay."""
    done = saving("disk_full", tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^error: .*best\.ckpt could not be written \(File too large\); .* unchanged; free some space", done.stdout
    )
    assert files(tmp_path / "run") == ["best.ckpt", "last.ckpt", "step-4.ckpt"]
    last = newest_resumable(tmp_path / "run" / "checkpoints")
    assert last == tmp_path / "run" / "checkpoints" / "last.ckpt"
    fit(tmp_path, tmp_path / "run", resume=last)
    fit(tmp_path, tmp_path / "whole")
    assert_same_bits(last, tmp_path / "whole" / "checkpoints" / "last.ckpt")


def test_a_tmpdir_on_another_file_system_changes_nothing(tmp_path: Path) -> None:
    """Fault: TMPDIR is on another file system. Effect: none: files are renamed within their folder."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir=shared) as other:
        done = saving("other_file_system", tmp_path, TMPDIR=other)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    partial, last = str(tmp_path / ".last.ckpt.partial"), str(tmp_path / "last.ckpt")
    assert told == [["opened", partial], ["renamed", partial, last]]
    assert load_checkpoint(Path(last))["global_step"] == 2


def bit_flipped(data: bytes) -> bytes:
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_training_from_what_is_left_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Fault: the last checkpoint is truncated, empty or has a flipped bit.

    Effect: a warning; the newest valid checkpoint is used.
    """
    fit(tmp_path, tmp_path / "run", batches=8)
    fit(tmp_path, tmp_path / "whole")
    folder = tmp_path / "run" / "checkpoints"
    for name in ("last.ckpt", "best.ckpt"):
        (folder / name).write_bytes(bit_flipped((folder / name).read_bytes()))
    left = newest_resumable(folder)
    assert left == folder / "step-4.ckpt"
    fit(tmp_path, tmp_path / "run", resume=left)
    for name in ("last.ckpt", "step-8.ckpt"):
        assert_same_bits(folder / name, tmp_path / "whole" / "checkpoints" / name)


SHORT = (*SMALL, "search=greedy", "scheduler.warmup_steps=200")  # whatever the number of steps


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("faults") / "run"
    done = run("train.py", *SHORT, f"hydra.run.dir={folder}", f"cache_dir={folder.parent / 'cache'}")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_command_resumes_a_moved_run_whose_last_checkpoint_is_damaged(trained: Path, tmp_path: Path) -> None:
    """Fault: a run folder was moved. Effect: training continues in the new place."""
    copy = shutil.copytree(trained, tmp_path / "copy")
    moved = Path(shutil.move(copy, tmp_path / "moved"))
    last = moved / "checkpoints" / "last.ckpt"
    last.write_bytes(bit_flipped(last.read_bytes()))
    for name in ("step-8.ckpt", "best.ckpt"):  # copytree made several files of one
        (moved / "checkpoints" / name).write_bytes(last.read_bytes())
    cache = f"cache_dir={trained.parent / 'cache'}"
    done = run("train.py", *SHORT, "resume=auto", "trainer.max_steps=12", cache, f"hydra.run.dir={moved}")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "last.ckpt cannot be read" in said
    assert f"falling back to {moved / 'checkpoints'}" in said
    assert "dirpath has changed" not in said
    kept = [name for name in files(moved) if not name.startswith("damaged-")]
    assert kept == ["best.ckpt", "last.ckpt", "step-12.ckpt", "step-4.ckpt", "step-8.ckpt"]
    step_8 = [folder / "checkpoints" / "step-8.ckpt" for folder in (moved, trained)]
    assert_same_bits(*step_8)
    best = load_checkpoint(moved / "checkpoints" / "best.ckpt")
    state = next(state for name, state in best["callbacks"].items() if name.startswith("BestCheckpoint"))
    assert state["best_model_path"].startswith((str(moved), str(trained)))
    assert not copy.exists()


@pytest.mark.parametrize("resume", ["auto", "PATH"])
def test_without_a_valid_checkpoint_the_command_says_so_and_runs_no_payload(tmp_path: Path, resume: str) -> None:
    """Fault: a checkpoint that contains code (a pickle payload). Effect: refused; the code never runs."""
    folder, canary = tmp_path / "run" / "checkpoints", tmp_path / "canary"
    folder.mkdir(parents=True)
    hostile = by_hand({"w": torch.zeros(1)}, 3, optimizer_states=[{}], x=Payload(canary))
    AtomicCheckpointIO().save_checkpoint(hostile, folder / "last.ckpt")
    (folder / "step-4.ckpt").touch()
    option = resume if resume == "auto" else str(folder / "last.ckpt")
    done = run("train.py", *SHORT, f"resume={option}", f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={tmp_path}")
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "last.ckpt cannot be read as a checkpoint" in done.stderr
    assert ("step-4.ckpt cannot be read as a checkpoint" in done.stderr) == (resume == "auto")
    assert "Traceback" not in done.stderr
    assert not canary.exists()
    assert files(tmp_path / "run") == ["last.ckpt", "step-4.ckpt"]


class Poison(Callback):
    """Spoils one weight after a step, as an overflow does."""

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: Any) -> None:
        if trainer.global_step == 7:
            with torch.no_grad():
                next(iter(pl_module.parameters())).view(-1)[0] = float("nan")


@pytest.mark.filterwarnings("ignore:Encountered `nan` values in tensor")  # the validation's loss
def test_weights_that_are_not_finite_never_reach_a_checkpoint(tmp_path: Path) -> None:
    """Fault: weights that are NaN or infinite. Effect: never saved."""
    with pytest.raises(CheckpointError, match=r"step 8: .* weight tensors are not finite.* was not replaced"):
        fit(tmp_path, tmp_path / "run", Poison())
    assert files(tmp_path / "run") == ["best.ckpt", "last.ckpt", "step-4.ckpt"]
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        checkpoint = load_checkpoint(path)
        assert checkpoint["global_step"] == 4
        assert all(bool(weight.isfinite().all()) for weight in checkpoint["state_dict"].values())
