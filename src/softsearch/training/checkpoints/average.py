"""Averaging of checkpoints' weights."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN, CheckpointContents, read_contents, to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import step_checkpoints


def newest_steps(folder: Path, count: int) -> list[Path]:
    """The newest ``count`` step checkpoints of a run's folder of checkpoints, the oldest first.

    Raises:
        CheckpointError: there are fewer.
    """
    paths = list(step_checkpoints(folder).values())
    if count > len(paths):
        names = ", ".join(path.name for path in paths) or "none"
        raise CheckpointError(
            f"the mean of the last {count} checkpoints of {folder}: found {names}; "
            f"{f'ask for at most {len(paths)}, or ' if paths else ''}keep more of the next run with callbacks.last.keep"
        )
    return paths[-count:]


def average(paths: Sequence[Path], on_done: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """The mean of the weights (Vaswani et al. 2017, section 6.1), in a checkpoint without training state.

    Its step is that of the newest one. They may be of several runs with the same model and tokenizers. ``on_done`` is
    called with 1 after each.

    Raises:
        CheckpointError: one is missing or damaged, or has other weights or tokenizers than the first.
    """
    if not paths:
        raise CheckpointError("there are no checkpoints to average; name some, as in ckpt='[a.ckpt,b.ckpt]'")
    total: dict[str, Tensor] = {}
    mean: dict[str, Any] = {}
    first: object = None
    for path in paths:
        checkpoint = load_checkpoint(path)
        contents, state = to_contents(path, checkpoint), checkpoint["state_dict"]
        identity = [t.fingerprint for t in contents.tokenizers], {name: w.shape for name, w in state.items()}
        first = first or identity
        if identity != first:
            raise CheckpointError(
                f"{path} has other weights or tokenizers than {paths[0]}; average checkpoints of one model only"
            )
        for name, tensor in state.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
        if not mean or contents.step >= mean["global_step"]:
            mean = {key: checkpoint[key] for key in ("state_dict", "global_step", ORIGIN)}
        on_done(1)
    for name, tensor in mean["state_dict"].items():
        if tensor.is_floating_point():  # the loss's buffer of word ids is the newest checkpoint's
            mean["state_dict"][name] = (total[name] / len(paths)).to(tensor.dtype)
    return mean | {"averaged": len(paths)}


def read_weights(ckpt: str | Path, last: int | None) -> CheckpointContents:
    """Reads a checkpoint, or the mean of the ``last`` step checkpoints in its folder.

    Raises:
        CheckpointError: one is missing or damaged.
    """
    if last is None:
        return read_contents(ckpt)
    paths = newest_steps(Path(ckpt).parent, last)
    return to_contents(paths[-1], average(paths))
