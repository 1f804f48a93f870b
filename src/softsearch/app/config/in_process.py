"""Commands as functions: in the caller's process, with errors as exceptions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_type_hints

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.allowed_classes import read_trust, trusting
from softsearch.app.config.command import checked_options, given_values, prepare_process
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import composed
from softsearch.app.config.shorthands import as_meant, with_data_choice
from softsearch.app.config.validation import drop_options_of_replaced
from softsearch.commands import CORE
from softsearch.errors import SoftsearchError
from softsearch.overwriting import refuse_overwriting
from softsearch.process import missing_package


def run_here(name: str, words: Sequence[str]) -> Path:
    """Runs a command in this process; returns the folder that it wrote to.

    Args:
        name: the command, one with ``key=value`` options.
        words: its options as typed.

    Raises:
        SoftsearchError: what the command would print as its error.
        KeyboardInterrupt: after Ctrl-C, once the command has saved its work.
    """
    command, line = CORE[name], CommandLine(name, words)
    prepare_process()
    try:
        line = replace(line, words=with_data_choice(name, as_meant(name, line.words), []))
        line.check()
        with _hydra_state(composed(name, *line.words, with_hydra=True)) as (config, folder):
            drop_options_of_replaced(config, line.words)
            options = checked_options(config, line)
            refuse_overwriting(given_values(options), command.writes)
            function = resolve_name(command.run)
            with trusting(read_trust(getattr(options, "trust", ()))):
                function(config if DictConfig in get_type_hints(function).values() else options)
            return Path(getattr(options, "run_dir", folder))
    except ModuleNotFoundError as error:
        raise SoftsearchError(missing_package(command, error)) from error
    except (HydraException, OmegaConfBaseException, OSError) as error:
        raise line.explain(error) from error
    except SystemExit as end:
        if end.code == 130:  # the training was interrupted and has saved a checkpoint
            raise KeyboardInterrupt from end
        raise


@contextmanager
def _hydra_state(config: DictConfig) -> Iterator[tuple[DictConfig, str]]:
    """Yields a command's config and its folder while Hydra's own config is where ``${hydra:...}`` finds it."""
    state: Any = HydraConfig.instance()
    before, state.cfg = state.cfg, config
    try:
        with read_write(config), open_dict(config):
            config.hydra.mode = RunMode.RUN
            folder = config.hydra.runtime.output_dir = str(Path(config.hydra.run.dir).absolute())
        task = config.copy()
        with read_write(task), open_dict(task):
            del task["hydra"]
        yield task, folder
    finally:
        state.cfg = before
