"""A pytest plugin without what Windows lacks: python -m pytest -p tests.portable tests/unit

The modules are gone for softsearch and its tests, because libraries have guards of their own; functions and signals for
all. No open file is renamed, no folder opened, and no file flushed that is open for reading alone.
"""

import builtins
import errno
import fcntl
import importlib
import multiprocessing
import os
import shutil
import signal
from pathlib import Path
from typing import Any

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
FUNCTIONS = ("fchmod", "fork", "forkpty", "geteuid", "getpgid", "killpg", "nice", "sched_getaffinity", "setsid")
SIGNALS = ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM")  # the standard library here needs SIGKILL and SIGCHLD


def simulate() -> None:
    """Takes them away from this process."""
    original, imported = builtins.__import__, importlib.import_module

    def guarded(name: str, *scope: Any, **options: Any) -> Any:
        importer = str(scope[0].get("__name__")) if scope and scope[0] else ""
        if name.partition(".")[0] in MODULES and importer.partition(".")[0] in ("softsearch", "tests"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *scope, **options)

    def import_module(name: str, package: str | None = None) -> Any:  # which pytest.importorskip calls
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, package)

    import torch  # noqa: F401 - looks for them while it is imported

    builtins.__import__, importlib.import_module = guarded, import_module
    multiprocessing.set_start_method("spawn", force=True)
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)
    _simulate_open_files()


def _simulate_open_files() -> None:
    """Takes away what Windows does with no open file or folder."""
    originals = {name: getattr(os, name) for name in ("rename", "replace", "open", "fsync")}

    def moved(name: str) -> Any:
        def move(source: Any, *rest: Any, **options: Any) -> None:
            if (path := os.path.realpath(source)) in _open_files():
                raise PermissionError(errno.EACCES, "it is open", path)
            originals[name](source, *rest, **options)

        return move

    def opened(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if Path(os.fsdecode(path)).is_dir():
            raise PermissionError(errno.EACCES, "it is a folder", path)
        return int(originals["open"](path, flags, *rest, **options))

    def flushed(file: Any) -> None:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "it is open for reading alone")
        originals["fsync"](file)

    os.rename, os.replace, os.open, os.fsync = moved("rename"), moved("replace"), opened, flushed
    shutil._use_fd_functions = False  # opens folders


def _open_files() -> set[str]:
    """What this process has open."""
    links = Path("/proc/self/fd")
    return {os.path.realpath(link) for link in links.iterdir()} if links.is_dir() else set()


simulate()
