"""Start of the lab's commands.

It imports little besides the standard library: signals are handled from the first moment, and it works without the lab.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

from softsearch.app.process import end_on_signals, end_silently, explained, fail, missing_package, tune_cpu
from softsearch.errors import SoftsearchError
from softsearch.runtime.completion import LAB

COMMANDS = {  # with configs of the same names, and the functions that do the work
    "train": "softsearch.app.train.train.train",
    "prepare": "softsearch.app.prepare.prepare",
    "count": "softsearch.app.count.count",
    "evaluate": "softsearch.app.evaluate.evaluate.evaluate",
    "score": "softsearch.app.score.score",
    "average": "softsearch.app.average.average",
    "export": "softsearch.app.export.export",
    "dictionary": "softsearch.app.dictionary.dictionary",
    "tune": "softsearch.extras.sweep.tune.tune",
    "sweep": "softsearch.extras.sweep.sweep.sweep",
    "compare": "softsearch.extras.sweep.compare.compare",
    "reproduce": "softsearch.extras.claims.command.reproduce",
    "history": "softsearch.extras.claims.history.history",
}

OTHERS = {  # whose functions take the words, if there can be any
    "cache": "softsearch.app.cache.cache",
    "demo": "softsearch.app.demo.demo",
    "doctor": "softsearch.app.doctor.doctor",
    "import": "softsearch.extras.importing.command.import_model",
    "new": "softsearch.app.new.new",
    "plugins": "softsearch.app.plugins.plugins",
}


def start(command: str, options: Sequence[str] | None = None) -> None:
    """Runs a command.

    Args:
        command: one of COMMANDS or OTHERS.
        options: as typed; None for those of ``sys.argv``.
    """
    end_on_signals()
    try:
        if command in OTHERS:
            words, (module, _, name) = list(options or ()), OTHERS[command].rpartition(".")
            takes_none = command in ("demo", "doctor", "plugins")
            if takes_none:
                ArgumentParser(f"softsearch {command}", description=f"{LAB[command]}.").parse_args(words)
            tune_cpu()
            code = getattr(import_module(module), name)(*[words] * (not takes_none))
            sys.stdout.flush()
            sys.exit(code)
        from softsearch.app.config.command import run
    except SoftsearchError as error:
        fail(error)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {missing_package(command, error)}")
    except BrokenPipeError:
        end_silently()
    except OSError as error:
        fail(explained(error))
    except KeyboardInterrupt:
        sys.exit(130)
    run(command, COMMANDS[command], options)
