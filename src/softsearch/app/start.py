"""Starts commands that take ``key=value``.

Little except the standard library is imported: signals are handled from the start, and it works without the lab.
"""

import sys
from collections.abc import Sequence
from typing import cast

from softsearch.commands import Command, named
from softsearch.process import end_on_signals, missing_package, protect_children


def start(command: Command | str, options: Sequence[str] | None = None) -> None:
    """Runs a command.

    Args:
        command: the command, or its name.
        options: as typed; None for those of ``sys.argv``.
    """
    end_on_signals()
    protect_children()
    command = cast(Command, named(command)) if isinstance(command, str) else command
    try:
        from softsearch.app.config.command import run
    except ModuleNotFoundError as error:
        sys.exit(f"error: {missing_package(command, error)}")
    run(command, options)
