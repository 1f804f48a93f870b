"""Commands as functions: in the caller's process, with errors as exceptions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict, read_write

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import composed, quoted
from softsearch.app.config.job import Job, as_options, explained, prepare_process
from softsearch.commands import CORE


def run_here(name: str, words: Sequence[str]) -> Path:
    """Runs a command in this process; returns the folder that it wrote to.

    Args:
        name: the command, one with ``key=value`` options.
        words: its options as typed.

    Raises:
        SoftsearchError: what the command would print as its error.
        KeyboardInterrupt: after Ctrl-C, once the command has saved its work.
    """
    try:
        with _job(name, words) as (job, folder):
            job.run()
            return Path(getattr(job.options, "run_dir", folder))
    except SystemExit as end:
        if end.code == 130:  # the training was interrupted and has saved a checkpoint
            raise KeyboardInterrupt from end
        raise


def options_here(name: str, words: Sequence[str]) -> Any:
    """Returns the options of a command, without running it; arguments and errors as those of ``run_here``."""
    with _job(name, words) as (job, _):
        return job.options


def typed(options: Mapping[str, Any]) -> list[str]:
    """Returns options of Python as they are typed."""
    return [f"{key}={_as_typed(value)}" for key, value in options.items()]


def _as_typed(value: object) -> str:
    """Returns a value as it is typed in a command."""
    if hasattr(value, "tolist"):  # a scalar or an array of NumPy or PyTorch
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {_as_typed(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_as_typed, value))}]"
    return str(value) if isinstance(value, int | float) else quoted(str(value))


@contextmanager
def _job(name: str, words: Sequence[str]) -> Iterator[tuple[Job, str]]:
    """Yields a command's job and its folder, in a process that is prepared for it."""
    command, line = CORE[name], CommandLine(name, words)
    prepare_process()
    with explained(command, line):
        line = as_options(line, [])
    with explained(command, line):
        line.check()
        with _hydra_state(composed(name, *line.words, with_hydra=True)) as (config, folder):
            yield Job.of(command, config, line), folder


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
