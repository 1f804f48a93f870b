"""Start of the lab's commands.

It imports little besides the standard library: signals are handled from the first moment, and it works without the lab.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from softsearch.app.process import end_on_signals, missing_package, tune_cpu
from softsearch.runtime.completion import LAB

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
    "compare": "softsearch.app.compare.compare",
    "reproduce": "softsearch.app.reproduce.command.reproduce",
    "history": "softsearch.app.history.history",
}


def start(command: str, options: Sequence[str] | None = None) -> None:
    """Runs a command.

    Args:
        command: one of COMMANDS, ``demo``, ``import``, ``new`` or ``plugins``.
        options: as typed; None for those of ``sys.argv``.
    """
    end_on_signals()
    try:
        if command in ("demo", "plugins"):
            ArgumentParser(f"softsearch {command}", description=f"{LAB[command]}.").parse_args(options)
        if command == "demo":
            from softsearch.app.demo import demo

            sys.exit(demo())
        if command == "plugins":
            from softsearch.app.plugins import plugins

            return plugins()
        if command == "import":
            tune_cpu()
            from softsearch.app.importing.command import import_model

            return import_model(list(options or ()))
        if command == "new":
            from softsearch.app.new import new

            return new(list(options or ()))
        from softsearch.app.config.command import run
    except ModuleNotFoundError as error:
        sys.exit(f"error: {missing_package(command, error)}")
    run(command, COMMANDS[command], options)
