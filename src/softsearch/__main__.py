"""Command ``softsearch``, also ``python -m softsearch``; ``softsearch.commands`` has the list of its commands.

``softsearch train ...`` is the same as ``python src/train.py ...``.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from softsearch.app.start import start
from softsearch.commands import find
from softsearch.errors import SoftsearchError
from softsearch.process import protect_children


def main() -> int:
    """Runs the command of ``sys.argv`` and returns its exit code."""
    protect_children()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - closed by >&-; open as long as the process
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:3], "--help", *sys.argv[3:]]
    words = sys.argv[1:]
    command = None
    with suppress(SoftsearchError):  # which is raised and printed below
        command = find(words) if words else None
    if command is not None and command.takes == "key=value":
        start(command, words[1:])
        return 0
    from softsearch.runtime import cli

    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main())
