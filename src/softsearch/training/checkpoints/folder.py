"""The folder of a run's checkpoints: finds the best, the last, the newest and one to resume from; averages them."""

import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import CheckpointError
from softsearch.files import MANIFEST
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import (
    ORIGIN,
    WEIGHTS,
    CheckpointContents,
    SaveOrigin,
    merged_state,
    read_contents,
    to_contents,
)
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, check_hash, load_checkpoint

BEST, LAST = "best.ckpt", "last.ckpt"
_STEP = re.compile(r"step-(\d+)\.ckpt")

log = logging.getLogger(__name__)


def step_checkpoints(folder: Path) -> dict[int, Path]:
    """Returns the files ``step-N.ckpt`` of a folder by N, in ascending order."""
    named = ((_STEP.fullmatch(path.name), path) for path in folder.glob("step-*.ckpt"))
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def checkpoint_file(path: Path) -> Path:
    """Returns the file for a path: the path itself, or the best, else the last checkpoint in a run's folder.

    Raises:
        CheckpointError: the folder has neither a best nor a last checkpoint.
    """
    if not path.is_dir():
        return path
    files = [path / folder / name for name in (BEST, LAST) for folder in ("checkpoints", "")]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        runs = sorted(str(file.parents[1]) for file in path.glob(f"*/checkpoints/{LAST}"))
        inside = f"; it has the runs {', '.join(runs[:5])}" if runs else ""
        if (path / MANIFEST).is_file():
            inside = "; a bundle can be evaluated (bundle=FOLDER), but not trained or exported: name its run"
        raise CheckpointError(
            f"{path} is a folder without checkpoints/{BEST} and {LAST}; expected a checkpoint, or the folder of a run"
            f"{inside}"
        )
    return found


def keep_steps(folder: Path, steps: Sequence[int]) -> None:
    """Links ``last.ckpt`` as ``step-N.ckpt`` and removes those of other steps.

    The link needs no space, because saving replaces ``last.ckpt`` and never modifies it. Its step is the last of
    ``steps``.
    """
    _link(folder / LAST, folder / f"step-{steps[-1]}.ckpt")
    for step, path in step_checkpoints(folder).items():
        if step not in steps:
            path.unlink(missing_ok=True)


def _link(path: Path, name: Path) -> None:
    """Gives a file another name, or copies it on a file system without hard links."""
    name.unlink(missing_ok=True)
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


def set_damaged_aside(folder: Path, newest: Path) -> None:
    """Renames damaged best and last checkpoints of a run that continues from ``newest``, which becomes the last one.

    A run with steps left would replace them; one that has ended would keep them, and commands would read them.
    """
    folder, newest = folder.resolve(), newest.resolve()
    for path in (folder / BEST, folder / LAST):
        try:
            if path.is_file() and path != newest:
                check_hash(path)
        except CheckpointError as error:
            aside = path.with_name(f"damaged-{path.name}")
            path.replace(aside)
            log.warning("%s; renamed to %s", error, aside.name)
    if newest.parent == folder and not (folder / LAST).exists():
        _link(newest, folder / LAST)


def load_resumable(path: Path) -> dict[str, Any]:
    """Reads a checkpoint that training can continue from.

    Raises:
        CheckpointError: it is missing or damaged, or has only weights.
    """
    checkpoint = load_checkpoint(path)
    to_contents(path, checkpoint)
    if not checkpoint.get("optimizer_states"):
        raise CheckpointError(
            f"{path} has no training state (it may be an average); resume from last.ckpt or a step-N.ckpt"
        )
    return checkpoint


def newest_resumable(folder: Path) -> Path | None:
    """Returns the checkpoint to resume from: ``last.ckpt``, or else the newest readable one; None if there are none.

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
    log.warning("%s\nfalling back to %s of step %d", "\n".join(problems), newest, steps[newest])
    return newest


def newest_steps(folder: Path, count: int) -> list[Path]:
    """Returns the newest ``count`` step checkpoints in a folder of checkpoints, the oldest first.

    Raises:
        CheckpointError: there are not enough.
    """
    if not folder.is_dir():
        raise CheckpointError(f"there is no folder {folder}; name a run, which has its checkpoints in it")
    paths = list(step_checkpoints(folder).values())
    if count > len(paths):
        names = ", ".join(path.name for path in paths) or "none"
        raise CheckpointError(
            f"the mean of the last {count} checkpoints of {folder}: found {names}; "
            f"{f'ask for at most {len(paths)}, or ' if paths else ''}keep more in the next run with callbacks.last.keep"
        )
    return paths[-count:]


def average(paths: Sequence[Path], on_done: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """Returns the mean of the weights (Vaswani et al. 2017, section 6.1) as a checkpoint without training state.

    Its step is that of the newest one. Checkpoints may come from several runs with the same model and tokenizers.
    ``on_done`` is called with 1 after each.

    Raises:
        CheckpointError: one is missing or damaged, or its weights or tokenizers do not match the first.
    """
    if not paths:
        raise CheckpointError("there are no checkpoints to average; name some, for example ckpt='[a.ckpt,b.ckpt]'")
    total: dict[str, Tensor] = {}
    mean: dict[str, Any] = {}
    first: object = None
    for path in paths:
        checkpoint = load_checkpoint(path)
        contents, state = to_contents(path, checkpoint), merged_state(path, checkpoint)
        identity = [t.fingerprint for t in contents.tokenizers], {name: w.shape for name, w in state.items()}
        first = first or identity
        if identity != first:
            raise CheckpointError(
                f"{path} has other weights or tokenizers than {paths[0]}; average only checkpoints of one model"
            )
        for name, tensor in state.items():
            if tensor.is_floating_point():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        if not mean or contents.step >= mean["global_step"]:
            mean = {key: checkpoint[key] for key in ("global_step", ORIGIN)} | {"state_dict": state}
        on_done(1)
    for name, tensor in mean["state_dict"].items():
        if name in total:  # the loss's buffer of word ids comes from the newest checkpoint
            mean["state_dict"][name] = (total[name] / len(paths)).to(tensor.dtype)
    return mean | {"averaged": len(paths)}


def save_weights(
    path: Path,
    weights: Mapping[str, Tensor],
    config: dict[str, Any],
    tokenizers: Tokenizers,
    source: ParallelSource | None = None,
) -> None:
    """Writes the checkpoint of a model that was counted or imported, not trained.

    Raises:
        CheckpointError: it cannot be written.
    """
    state = {f"{WEIGHTS}{name}": weight.contiguous() for name, weight in weights.items()}
    origin = SaveOrigin(config, tokenizers, source).origin
    AtomicCheckpointIO().save_checkpoint({"state_dict": state, "global_step": 0, ORIGIN: origin}, path)


def read_weights(ckpt: str | Path, last: int | None) -> CheckpointContents:
    """Reads a checkpoint, or the mean of the ``last`` step checkpoints in its folder.

    Raises:
        CheckpointError: one is missing or damaged.
    """
    if last is None:
        return read_contents(ckpt)
    paths = newest_steps(Path(ckpt).parent, last)
    return to_contents(paths[-1], average(paths))
