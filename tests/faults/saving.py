"""Saving under faults, for test_checkpoints.py: python -m tests.faults.saving WHAT FOLDER."""

import os
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from softsearch.training.checkpoints.folder import keep_steps, newest_resumable
from tests.support.written import by_hand

KILLS = 20


def state(step: int) -> dict[str, Any]:
    """A checkpoint whose weights equal its step; two megabytes, so that a save takes a while."""
    return by_hand({"w": torch.full((500_000,), float(step))}, step, optimizer_states=[{"step": step}])


def save_without_end(folder: Path, step: int) -> None:
    """Saves as a run does after each validation."""
    steps: list[int] = []
    while True:
        step += 1
        steps = [*steps, step][-3:]
        AtomicCheckpointIO().save_checkpoint(state(step), folder / "last.ckpt")
        keep_steps(folder, steps)


def sigkill(folder: Path) -> None:
    """Kills a process that only saves, again and again, and reads the newest checkpoint each time."""
    rng = random.Random(0)
    for _ in range(2):  # the first save takes longer
        started = time.monotonic()
        AtomicCheckpointIO().save_checkpoint(state(0), folder / "last.ckpt")
    one_save = time.monotonic() - started
    newest = partial = 0
    for _ in range(KILLS):
        child = os.fork()
        if not child:
            save_without_end(folder, newest)
        time.sleep(rng.uniform(0.5, 10) * one_save)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        partial += (folder / ".last.ckpt.partial").exists()
        found = newest_resumable(folder)
        assert found == folder / "last.ckpt", found  # not even a fall-back is needed
        for path in folder.glob("*.ckpt"):
            checkpoint = load_checkpoint(path)
            assert bool((checkpoint["state_dict"]["w"] == checkpoint["global_step"]).all()), path
        step = load_checkpoint(found)["global_step"]
        assert step >= newest
        newest = step
    print(f"{KILLS} kills, {partial} of them in a save, {newest} saves")


class SmallDisk(Callback):
    """Limits the size of files once the first checkpoint is saved, as a full disk does."""

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.global_step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


def disk_full(folder: Path) -> None:
    """Trains until a save fails."""
    from tests.support.small_run import fit

    try:
        fit(folder, folder / "run", SmallDisk())
    except CheckpointError as error:
        print(f"error: {error}")


def other_file_system(folder: Path) -> None:
    """Saves, and prints which files are opened for writing or renamed."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            print("opened", arguments[0])
        elif event == "os.rename":
            print("renamed", *map(str, arguments[:2]))

    AtomicCheckpointIO().save_checkpoint(state(1), folder / "last.ckpt")
    sys.addaudithook(watch)
    AtomicCheckpointIO().save_checkpoint(state(2), folder / "last.ckpt")


if __name__ == "__main__":
    {"sigkill": sigkill, "disk_full": disk_full, "other_file_system": other_file_system}[sys.argv[1]](Path(sys.argv[2]))
