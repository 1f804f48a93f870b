"""Start of the lab's commands.

It imports the standard library alone: signals are handled from the first moment, and it works without the lab.
"""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

COMMANDS = {  # with configs of the same names, and the functions that do the work
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
        command: one of COMMANDS, ``demo`` or ``plugins``.
        options: as typed; None for those of ``sys.argv``.
    """
    end_on_signals()
    try:
        if command == "demo":
            from softsearch.app.demo import demo

            sys.exit(demo())
        if command == "plugins":
            from softsearch.app.plugins import plugins

            return plugins()
        from softsearch.app.config.command import run
    except ModuleNotFoundError as error:
        sys.exit(f"error: {missing_package(command, error)}")
    run(command, COMMANDS[command], options)


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
