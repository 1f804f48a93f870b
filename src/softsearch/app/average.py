"""From several checkpoints to one with the mean of their weights."""

from pathlib import Path

from omegaconf import DictConfig

from softsearch.app.config.validation import plain
from softsearch.app.console import plain_console
from softsearch.errors import ConfigError
from softsearch.training.checkpoints.average import average as mean_of
from softsearch.training.checkpoints.average import newest_steps
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO


def average(config: DictConfig) -> None:
    """Averages the newest checkpoints of ``run``, or those named by ``ckpt``, and writes a checkpoint.

    Raises:
        SoftsearchError: an option is wrong, or a checkpoint cannot be read or has other weights than the rest.
    """
    resolved = plain(config)
    run, ckpt, last, out = (resolved[name] for name in ("run", "ckpt", "last", "out"))
    if (run is None) == (ckpt is None):
        raise ConfigError(f"run={run} and ckpt={ckpt}: expected one of the two; set run=RUN or ckpt='[a.ckpt,b.ckpt]'")
    if ckpt is None:
        folder = Path(str(run)) / "checkpoints"
        paths = newest_steps(folder, last)
        target = Path(out or folder / "average.ckpt")
    else:
        if not isinstance(ckpt, list) or out is None:
            raise ConfigError(f"ckpt={ckpt} and out={out}: expected ckpt='[a.ckpt,b.ckpt]' and out=PATH")
        paths, target = [Path(path) for path in ckpt], Path(out)
    AtomicCheckpointIO().save_checkpoint(mean_of(paths), target)
    plain_console().print(
        f"the mean of {', '.join(path.name for path in paths)}: {target}", soft_wrap=True, highlight=False
    )
