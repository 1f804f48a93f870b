"""Folder of a run's checkpoints: ``last.ckpt``, the newest ``step-N.ckpt``, and the one to resume from."""

import logging
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_contents import to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint

BEST, LAST = "best.ckpt", "last.ckpt"
_STEP = re.compile(r"step-(\d+)\.ckpt")

log = logging.getLogger(__name__)


def step_checkpoints(folder: Path) -> dict[int, Path]:
    """The files ``step-N.ckpt`` of a folder by N, in ascending order."""
    named = ((_STEP.fullmatch(path.name), path) for path in folder.glob("step-*.ckpt"))
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def checkpoint_file(path: Path) -> Path:
    """The file that a path names: itself, or of a run's folder, or of its ``checkpoints``, the best, else the last.

    Raises:
        CheckpointError: the folder has neither.
    """
    if not path.is_dir():
        return path
    files = [path / folder / name for name in (BEST, LAST) for folder in ("checkpoints", "")]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        runs = sorted(str(file.parents[1]) for file in path.glob(f"*/checkpoints/{LAST}"))
        inside = f"; runs in it are {', '.join(runs[:5])}" if runs else " (a bundle is named with bundle=FOLDER)"
        raise CheckpointError(
            f"{path} is a folder without checkpoints/{BEST} and {LAST}; expected a checkpoint, or the folder of a run"
            f"{inside}"
        )
    return found


def keep_steps(folder: Path, steps: Sequence[int]) -> None:
    """Links ``last.ckpt`` as ``step-N.ckpt`` and removes those of other steps.

    The link takes no space: saving replaces ``last.ckpt`` and never writes into it. The last of ``steps`` is its step.
    """
    last, newest = folder / LAST, folder / f"step-{steps[-1]}.ckpt"
    newest.unlink(missing_ok=True)
    try:
        os.link(last, newest)
    except OSError:  # a file system without hard links
        shutil.copyfile(last, newest)
    for step, path in step_checkpoints(folder).items():
        if step not in steps:
            path.unlink(missing_ok=True)


def load_resumable(path: Path) -> dict[str, Any]:
    """Reads a checkpoint that training can continue from.

    Raises:
        CheckpointError: it is missing or damaged, or holds weights alone.
    """
    checkpoint = load_checkpoint(path)
    to_contents(path, checkpoint)
    if not checkpoint.get("optimizer_states"):
        raise CheckpointError(
            f"{path} holds no state of training, as an average does not; resume from last.ckpt or a step-N.ckpt"
        )
    return checkpoint


def newest_resumable(folder: Path) -> Path | None:
    """The checkpoint to resume from: ``last.ckpt``, or else the newest readable one; None if there are none.

    Raises:
        CheckpointError: none can be read.
    """
    last = folder / LAST
    others = [path for path in (*step_checkpoints(folder).values(), folder / BEST) if path.is_file()]
    if not others and not last.is_file():
        return None
    problems: list[str] = []
    steps: dict[Path, int] = {}
    for path in (last, *others):
        try:
            steps[path] = load_resumable(path)["global_step"]
        except CheckpointError as error:
            problems.append(str(error))
        if last in steps:
            return last
    if not steps:
        raise CheckpointError(
            f"resume=auto: no checkpoint in {folder} can be read; put a copy there, or start again with resume=null:\n"
            + "\n".join(problems)
        )
    newest = max(steps, key=steps.__getitem__)
    log.warning("%s\nfalling back to %s, of step %d", "\n".join(problems), newest, steps[newest])
    return newest
