"""A command's job: its words as options, checked, and its function called with them."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryFile
from typing import Any, get_type_hints

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.allowed_classes import read_trust, trusting
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import search_own_configs
from softsearch.app.config.options import Part, Parts, options_of
from softsearch.app.config.resolvers import register_resolvers
from softsearch.app.config.shorthands import as_meant, with_data_choice
from softsearch.app.config.validation import drop_options_of_replaced, nearest, read_options
from softsearch.commands import Command
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.overwriting import refuse_overwriting
from softsearch.process import missing_package, tune_cpu

_NOT_FOR_USERS = (  # warnings about intended behaviour
    r".*isinstance\(treespec, LeafSpec\)",  # deprecated since PyTorch 2.13
    "Checkpoint directory .* exists and is not empty",  # in a resumed run
    "You're resuming from a checkpoint that ended before the epoch ended",  # our datamodule knows the position
    "Detected call of `lr_scheduler.step",  # the first step may be skipped
    "The .* does not have many workers",  # one process collates token ids fast enough
    "It is recommended to use `self.log.*sync_dist=True",  # all processes have the same value
    "RNN module weights are not part of single contiguous chunk",  # those of a cell, put in cuDNN's order at each call
)


@dataclass(frozen=True)
class Job:
    """A command with its options, which have been checked.

    Args:
        function: the command's function.
        config: what the options are read from.
        options: the options; None if the command takes the config.
    """

    function: Callable[..., None]
    config: DictConfig
    options: Any

    @classmethod
    def of(cls, command: Command, config: DictConfig, line: CommandLine) -> "Job":
        """Checks the options, and imports the command's function if they are right.

        Raises:
            ConfigError: an option is wrong, or names a file that the command reads as one to write.
        """
        drop_options_of_replaced(config, line.words)
        options = _checked_options(config, line)
        refuse_overwriting(_given_values(options), command.writes)
        return cls(resolve_name(command.run), config, options)

    def run(self) -> None:
        """Calls the function."""
        takes_config = DictConfig in get_type_hints(self.function).values()
        with trusting(read_trust(getattr(self.options, "trust", ()))):
            self.function(self.config if takes_config else self.options)


def prepare_process() -> None:
    """Prepares a process for commands: its CPU, resolvers, warnings and log."""
    tune_cpu()
    search_own_configs()
    register_resolvers()
    logging.raiseExceptions = False  # no tracebacks if the log cannot be written, for example on a full disk
    for message in _NOT_FOR_USERS:
        warnings.filterwarnings("ignore", message=message)


def as_options(line: CommandLine, notes: list[str]) -> CommandLine:
    """Returns the line with its shorthands as options; appends to ``notes`` what has been chosen for the user."""
    return replace(line, words=with_data_choice(line.command, as_meant(line.command, line.words), notes))


@contextmanager
def explained(command: Command, line: CommandLine) -> Iterator[None]:
    """Context whose errors of Hydra, the system and missing packages become errors for users."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SoftsearchError(missing_package(command, error)) from error
    except ConfigError as error:
        if (whole := line.with_origin(error)) is error:
            raise
        raise whole from error
    except (HydraException, OmegaConfBaseException) as error:
        raise line.explain(error) from None  # a notebook shows a hundred lines of causes, and the message has all
    except OSError as error:
        raise line.explain(error) from error


def _checked_options(config: DictConfig, line: CommandLine) -> Any:
    """Returns the command's options, checked as far as possible without importing the lab.

    Raises:
        ConfigError: there is no such choice or key, or a value is missing, of the wrong type or out of range.
    """
    choices = HydraConfig.get().runtime.choices
    recipe, model = choices.get("recipe"), choices.get("model")
    if recipe not in (None, model) and recipe not in (recipes := line.choices("recipe")):  # a recipe is optional
        raise ConfigError(f"there is no recipe={recipe}; {nearest(recipe, recipes)}")
    if (kind := options_of(line.command)) is None:
        return None
    if choices.get("data") in ("table", "parallel"):
        _refuse_documents(config.data, is_table=choices["data"] == "table")
    for field in fields(kind):
        if field.type in (Part, Parts) and config.get(field.name) is None:
            raise line.no_choice(field.name, None)
    options: Any = read_options(config, kind)
    if hasattr(options, "run_dir"):
        _check_writable(options.run_dir)
    return options


def _refuse_documents(data: DictConfig, *, is_table: bool) -> None:
    """Refuses a file to train on that is neither text nor a table, before columns and other files are asked for."""
    from softsearch.data.corpora.rows import refuse_no_table
    from softsearch.text.corpus import read_lines

    train = None if OmegaConf.is_missing(data, "train") else data.train
    if isinstance(train, str) and (path := Path(train)).is_file():
        if is_table:
            refuse_no_table(path, train)
        else:
            next(read_lines(path))


def _given_values(options: Any) -> dict[str, Any]:
    """Returns the values of a command's options; groups as plain values, with interpolations as they are."""
    values = {each.name: getattr(options, each.name) for each in fields(options)} if options is not None else {}
    return {
        name: OmegaConf.to_container(value, resolve=False) if OmegaConf.is_config(value) else value
        for name, value in values.items()
    }


def _check_writable(folder: Path) -> None:
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with TemporaryFile(dir=existing) as file:
            file.write(b"\0")
    except OSError as error:
        raise SoftsearchError(
            f"run_dir is {str(folder)!r}, which cannot be written ({error.strerror}); set run_dir or hydra.run.dir to "
            "another folder, or free some space"
        ) from error
