"""What is printed after a sweep (``-m``), once for all of its jobs."""

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from softsearch.app.config.shorthands import shell_command
from softsearch.app.console import echo


class NextOfSweep(Callback):
    """Prints the command that compares the runs of a sweep; configs/train.yaml names it."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Prints it."""
        untested = ("split=val",) if not config.test else ()
        echo(f"next: {shell_command(('softsearch', 'compare', f'{config.hydra.sweep.dir}/*', *untested))}")
