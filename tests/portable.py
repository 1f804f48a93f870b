"""A pytest plugin without what Windows lacks: python -m pytest -p tests.portable tests/unit

The modules are gone for softsearch alone, because libraries have guards of their own; functions and signals for all.
"""

import builtins
import multiprocessing
import os
import signal
from typing import Any

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
FUNCTIONS = ("fork", "forkpty", "getpgid", "killpg", "nice", "sched_getaffinity", "setsid")
SIGNALS = ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM")  # the standard library here needs SIGKILL and SIGCHLD


def simulate() -> None:
    """Takes them away from this process."""
    original = builtins.__import__

    def guarded(name: str, *scope: Any, **options: Any) -> Any:
        importer = str(scope[0].get("__name__")) if scope and scope[0] else ""
        if name.partition(".")[0] in MODULES and importer.partition(".")[0] == "softsearch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *scope, **options)

    import torch  # noqa: F401 - looks for them while it is imported

    builtins.__import__ = guarded
    multiprocessing.set_start_method("spawn", force=True)
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)


simulate()
