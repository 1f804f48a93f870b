"""Starts a command; imports nothing but the standard library, so that signals are heard from the first moment."""

import os
import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def start(command: str, work: str) -> None:
    """Runs a command of ``src``.

    Args:
        command: name of its config.
        work: full name of the function that does its work, given the config.
    """
    end_on_signals()
    from softsearch.app.config.command import run

    run(command, work)


def end_on_signals() -> None:
    """Lets Ctrl-C and SIGTERM end the process with 130 and 143, at once: nothing has been begun that must be ended.

    An exception instead would come up in the midst of some import, which may swallow it or print it.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not where nohup ignores it
            signal.signal(number, _end)


def raise_on_signals() -> None:
    """Makes exceptions of signals again, for work that ends what it has begun: KeyboardInterrupt, SystemExit."""
    for number, handler in zip(_SIGNALS, (signal.default_int_handler, _exit), strict=True):
        if signal.getsignal(number) is _end:
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def _exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
