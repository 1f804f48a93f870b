"""Runs commands with Hydra: composition, run folders, and errors that fit on one screen."""

import logging
import os
import sys
from collections.abc import Sequence

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS, VERSION, extra_config_dirs, search_package, with_model_of_init
from softsearch.app.config.job import Job, as_options, explained, prepare_process
from softsearch.app.config.resolvers import HYDRA_1_4, register_resolvers
from softsearch.commands import Command
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.process import discard_output, end_on_signals, end_silently, fail, raise_on_signals

log = logging.getLogger(__name__)
_MAIN = {
    **VERSION,
    **({"execution_whitelist": ["softsearch.app.console.*", "softsearch.app.config.*"]} if HYDRA_1_4 else {}),
}  # for classes of logging and callbacks


def run(command: Command, options: Sequence[str] | None = None) -> None:
    """Runs a command; prints errors meant for users and ends the process, with exit code 2 for wrong usage.

    Args:
        command: the command, whose function is imported after the options have been checked.
        options: as typed; None for those of ``sys.argv``.
    """
    argv = sys.argv
    line = CommandLine(command.name, argv[1:] if options is None else options, options is None)
    notes: list[str] = []

    def job(config: DictConfig) -> None:
        sys.argv = argv  # Lightning starts its other processes with these words
        prepare_process()  # again, because a launcher may have started this process
        try:
            with explained(command, line):
                ready = Job.of(command, config, line)
                raise_on_signals()
                for note in (*notes, *extra_config_dirs()):
                    log.info(note)
                ready.run()
        except SoftsearchError as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("error: %s", error)
                kind = ConfigError if error.exit_code == ConfigError.exit_code else SoftsearchError
                raise kind(f"a job of the sweep failed: {error}") from error  # Hydra waits for the other jobs
            fail(error)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing them
    end_on_signals()
    prepare_process()
    search_package(command)
    try:
        line = as_options(line, notes)
        if line.asks_for_help():
            from softsearch.app.config.help import Help

            register_resolvers(without_pytorch=True)
            print(Help(line), flush=True)
            return
        further = line.check()
        sys.argv = [argv[0], *with_model_of_init(line.words), *further]  # Hydra reads them from here
        hydra.main(config_path=str(CONFIGS), config_name=command.name, **_MAIN)(job)()
        sys.stdout.flush()
    except (SoftsearchError, HydraException, OmegaConfBaseException) as error:
        fail(line.explain(error))
    except BrokenPipeError:
        end_silently()
    except OSError as error:
        fail(_unwritten(error, line))
    except KeyboardInterrupt:
        sys.exit(130)


def _unwritten(error: OSError, line: CommandLine) -> SoftsearchError:
    """Says what cannot be written: standard output, which has no name, or the run's folder."""
    if error.filename is None:
        discard_output()
        return SoftsearchError(f"standard output: {error.strerror}; free space or choose another file")
    return SoftsearchError(f"the run's folder cannot be written: {line.explain(error)}; set hydra.run.dir=FOLDER")
