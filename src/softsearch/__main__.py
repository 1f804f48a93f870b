"""Command ``softsearch``, also ``python -m softsearch``: commands of the runtime, and of the lab if it is installed.

``softsearch train ...`` is the same as ``python src/train.py ...``. Both have ``score``: the lab's runs if the first
argument is an option or a run, as in ``softsearch score RUN SRC TGT``; otherwise the runtime's
``score BUNDLE SRC TGT``.
"""

import os
import re
import sys
from pathlib import Path

from softsearch.app.start import start
from softsearch.runtime.completion import LAB

_OPTION = re.compile(r"[+~]*[A-Za-z_][\w.]*=")


def main() -> int:
    """Runs the command of ``sys.argv`` and returns its exit code."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - closed by >&-; open as long as the process
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:3], "--help", *sys.argv[3:]]
    command, *arguments = sys.argv[1:] or [""]
    if command in LAB and (command != "score" or (arguments and _is_of_lab(arguments[0]))):
        start(command, arguments)
        return 0
    from softsearch.runtime import cli

    return cli.main()


def _is_of_lab(word: str) -> bool:
    """Whether the first argument of ``score`` is an option, a run or a checkpoint."""
    return bool(_OPTION.match(word)) or word.endswith(".ckpt") or Path(word, "checkpoints").is_dir()


if __name__ == "__main__":
    sys.exit(main())
