"""Average of several checkpoints: a checkpoint with the mean of their weights."""

from softsearch.app.config.options import Average
from softsearch.app.console import echo, progress
from softsearch.errors import ConfigError
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.checkpoints.folder import average as average_checkpoints
from softsearch.training.checkpoints.folder import checkpoint_file, newest_steps


def average(options: Average) -> None:
    """Averages the newest checkpoints of ``run``, or those named by ``ckpt``, and writes a checkpoint.

    Raises:
        SoftsearchError: an option is wrong, a checkpoint cannot be read, or its weights do not match the others.
    """
    run, ckpt, out = options.run, options.ckpt, options.out
    if (run is None) == (ckpt is None):
        raise ConfigError(
            f"run={run} and ckpt={ckpt}: expected exactly one of them; set run=RUN or ckpt='[a.ckpt,b.ckpt]'"
        )
    if run is not None:
        paths = newest_steps(run / "checkpoints", options.last)
        out = out or run / "checkpoints" / "average.ckpt"
    else:
        paths = [checkpoint_file(path) for path in ckpt or []]
    if out is None:
        raise ConfigError("out is null, expected out=PATH with ckpt='[a.ckpt,b.ckpt]'; set out")
    with progress("averaging", len(paths)) as advance:
        mean = average_checkpoints(paths, advance)
    AtomicCheckpointIO().save_checkpoint(mean, out)
    echo(f"the mean of {', '.join(path.name for path in paths)}: {out}")
