"""A command's process: its end by a signal or an error, packages that it lacks, tuning of its CPU."""

import ctypes
import json
import os
import platform
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from softsearch.errors import SoftsearchError, printable

if TYPE_CHECKING:
    from softsearch.commands import Command

SPIN_COUNT = 1500  # turns of libgomp's waiting loop; benchmarks/README.md has what it costs and saves
KERNELS = 256  # of oneDNN, whose default is 1,024
PYTORCH_KERNELS = 10  # in PyTorch's own cache, on top of oneDNN's; its default is 1,024
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h
_OF_LAB, _TOO_NEW = {"lab", "sweep", "hf", "ctranslate2", "lora"}, (3, 14)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def missing_package(command: "Command", error: ModuleNotFoundError) -> str:
    """The message that says what to install; raises the error again if the module is our own, which is a bug."""
    if not error.name or error.name.startswith("softsearch"):
        raise error
    advice = how_to_install(command.needs) if command.needs else f"pip install {error.name}"
    return f"{command.name} needs {error.name}, which is not installed: {advice}"


def how_to_install(extras: str) -> str:
    """Returns the line to type, or what the extras need first: Python 3.14 and later install nothing of the lab's.

    The extras come from where softsearch was installed from: a clone, a wheel, a repository, or an index.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, as is urllib.request
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    if _OF_LAB & {*extras.split(",")} and sys.version_info >= _TOO_NEW:
        return f"softsearch[{extras}] needs Python 3.11, 3.12 or 3.13, this is {platform.python_version()}"
    try:
        origin = json.loads(distribution("softsearch").read_text("direct_url.json") or "{}")  # of PEP 610
    except PackageNotFoundError:  # found through PYTHONPATH
        origin = {}
    url, vcs = origin.get("url", ""), origin.get("vcs_info")
    if "dir_info" not in origin:
        source = f" @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f" @ {url}" * bool(url)
        return f"pip install 'softsearch[{extras}]{source}'"
    folder = Path(url2pathname(urlsplit(url).path))
    editable = "-e " * bool(origin["dir_info"].get("editable"))
    return f"pip install {editable}'{'.' if folder == Path.cwd() else folder}[{extras}]'"


def explained(error: OSError) -> SoftsearchError:
    """An error of the system as one for users."""
    return SoftsearchError(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))


def fail(error: SoftsearchError) -> NoReturn:
    """Prints an error meant for users, and ends the process with its exit code."""
    print(f"error: {printable(str(error), keep=chr(10))}", file=sys.stderr, flush=True)
    sys.exit(error.exit_code)


def end_silently() -> NoReturn:
    """Ends the process whose standard output nobody reads any more, as of ``train --help | head``."""
    discard_output()
    sys.exit(0)


def discard_output() -> None:
    """Keeps Python from writing once more, at its end, what standard output could not take."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def protect_children() -> None:
    """Makes every Python process that this one starts, however it does, import nothing from the current folder."""
    os.environ["PYTHONSAFEPATH"] = "1"


def end_on_signals() -> None:
    """Makes Ctrl-C and SIGTERM end the process at once, with 130 and 143, while there is nothing to clean up.

    An exception would be raised in the middle of some import, which may swallow or print it.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not where nohup ignores it
            signal.signal(number, _end)


def raise_on_signals(*, ctrl_c_exits: bool = False) -> None:
    """Makes signals raise KeyboardInterrupt and SystemExit again, for work that has to clean up.

    With ``ctrl_c_exits`` both raise SystemExit: asyncio would replace Python's own handler of Ctrl-C, and cancel a
    server's answers instead of letting it refuse them.
    """
    for number, handler in zip(_SIGNALS, (_exit if ctrl_c_exits else signal.default_int_handler, _exit), strict=True):
        if signal.getsignal(number) is _end:
            signal.signal(number, handler)


def tune_cpu() -> None:
    """Makes PyTorch faster on a CPU. Call it before PyTorch is imported; variables that the user has set stay.

    - ``GOMP_SPINCOUNT``: otherwise threads spin at a barrier for milliseconds, even while another process has the core
      of the thread that they wait for. ``OMP_WAIT_POLICY`` sets it too.
    - ``ONEDNN_PRIMITIVE_CACHE_CAPACITY``: products in bfloat16 are compiled by shape, about 40 in a batch, and take 0.2
      MB each; those of a batch are enough, because compiling them again in every epoch costs nothing measurable.
    - ``LRU_CACHE_CAPACITY``: PyTorch's own cache of them takes 0.4 GB and gains nothing.
    - glibc allocates in large steps and never returns memory: otherwise half of a training step may go to page faults.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(PYTORCH_KERNELS))
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # not glibc
            mallopt = ctypes.CDLL("libc.so.6").mallopt
            mallopt(_M_MMAP_MAX, 0)
            mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
            mallopt(_M_TOP_PAD, 256 * 2**20)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def _exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
