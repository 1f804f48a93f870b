"""Runs a command that ends when its parent process does: python die_with_parent.py PARENT COMMAND [ARGUMENT ...].

A sweep killed with SIGKILL cannot end its trial; on Linux the kernel does (prctl(2)).
"""

import ctypes
import os
import signal
import sys

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, which survives exec


def main(parent: str, *command: str) -> None:
    """Replaces this process with ``command``, which gets SIGTERM when the process ``parent`` dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != int(parent):  # the parent died before prctl
            sys.exit(128 + signal.SIGTERM)
    os.execv(command[0], command)  # noqa: S606 - comes from the process that started this one


if __name__ == "__main__":
    main(*sys.argv[1:])
