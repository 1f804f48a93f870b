"""Signals of a command's process, and packages that it lacks; imports the standard library alone."""

import os
import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def missing_package(command: str, error: ModuleNotFoundError) -> str:
    """The message that says what to install; raises the error again if the module is our own, which is a bug."""
    if not error.name or error.name.startswith("softsearch"):
        raise error
    extra = "sweep" if error.name == "optuna" else "lab"
    return f"{command} needs {error.name}, which is not installed: pip install 'softsearch[{extra}]'"


def end_on_signals() -> None:
    """Makes Ctrl-C and SIGTERM end the process at once, with 130 and 143, while there is nothing to clean up.

    An exception would be raised in the middle of some import, which may swallow or print it.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not where nohup ignores it
            signal.signal(number, _end)


def raise_on_signals() -> None:
    """Makes signals raise KeyboardInterrupt and SystemExit again, for work that has to clean up."""
    for number, handler in zip(_SIGNALS, (signal.default_int_handler, _exit), strict=True):
        if signal.getsignal(number) is _end:
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def _exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
