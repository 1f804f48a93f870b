"""The commands of the lab, and their start.

It imports nothing but the standard library: signals are heard from the first moment, and it works without the lab.
"""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

COMMANDS = {  # each with a config of its name, and the function that does its work
    "train": "softsearch.app.train.train.train",
    "prepare": "softsearch.app.prepare.prepare",
    "evaluate": "softsearch.app.evaluate.evaluate.evaluate",
    "score": "softsearch.app.score.score",
    "average": "softsearch.app.average.average",
    "export": "softsearch.app.export.export",
    "dictionary": "softsearch.app.dictionary.dictionary",
    "tune": "softsearch.app.tune.tune",
    "sweep": "softsearch.app.sweep.sweep.sweep",
    "compare": "softsearch.app.compare.compare.compare",
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def start(command: str, options: Sequence[str] | None = None) -> None:
    """Runs a command.

    Args:
        command: one of COMMANDS, or ``demo``.
        options: as typed; None for those of ``sys.argv``.
    """
    end_on_signals()
    try:
        if command == "demo":
            from softsearch.app.demo import demo

            sys.exit(demo())
        from softsearch.app.config.command import run
    except ModuleNotFoundError as error:
        sys.exit(f"error: {missing_package(command, error)}")
    run(command, COMMANDS[command], options)


def missing_package(command: str, error: ModuleNotFoundError) -> str:
    """Says what to install; an error about a module of our own is a bug, and raised again."""
    if not error.name or error.name.startswith("softsearch"):
        raise error
    extra = "sweep" if error.name == "optuna" else "lab"
    return f"{command} needs {error.name}, which is not installed: pip install 'softsearch[{extra}]'"


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
