"""Runs commands with Hydra: composition, run folders, and errors that fit on one screen."""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryFile
from typing import Any, get_type_hints

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.allowed_classes import read_trust, trusting
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import (
    CONFIGS,
    HYDRA_1_4,
    VERSION,
    extra_config_dirs,
    search_own_configs,
    search_package,
    with_model_of_init,
)
from softsearch.app.config.options import Part, Parts, options_of
from softsearch.app.config.processes import launched_rank, run_name
from softsearch.app.config.shorthands import as_meant, with_data_choice
from softsearch.app.config.validation import build, drop_options_of_replaced, nearest, read_options
from softsearch.commands import Command
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.overwriting import refuse_overwriting
from softsearch.process import (
    discard_output,
    end_on_signals,
    end_silently,
    fail,
    missing_package,
    raise_on_signals,
    tune_cpu,
)

log = logging.getLogger(__name__)
_NOT_FOR_USERS = (  # warnings about intended behaviour
    r".*isinstance\(treespec, LeafSpec\)",  # deprecated since PyTorch 2.13
    "Checkpoint directory .* exists and is not empty",  # in a resumed run
    "You're resuming from a checkpoint that ended before the epoch ended",  # our datamodule knows the position
    "Detected call of `lr_scheduler.step",  # the first step may be skipped
    "The .* does not have many workers",  # one process collates token ids fast enough
    "It is recommended to use `self.log.*sync_dist=True",  # all processes have the same value
    "RNN module weights are not part of single contiguous chunk",  # those of a cell, put in cuDNN's order at each call
)
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
            drop_options_of_replaced(config, line.words)
            checked = checked_options(config, line)
            refuse_overwriting(given_values(checked), command.writes)
            function = resolve_name(command.run)
            raise_on_signals()
            for note in (*notes, *extra_config_dirs()):
                log.info(note)
            with trusting(read_trust(getattr(checked, "trust", ()))):
                function(config if DictConfig in get_type_hints(function).values() else checked)
        except ModuleNotFoundError as error:
            fail(SoftsearchError(missing_package(command, error)))
        except (SoftsearchError, HydraException, OmegaConfBaseException, OSError) as error:
            explained = line.explain(error)
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("error: %s", explained)
                kind = ConfigError if explained.exit_code == ConfigError.exit_code else SoftsearchError
                raise kind(f"a job of the sweep failed: {explained}") from error  # Hydra waits for the other jobs
            fail(explained)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing them
    end_on_signals()
    prepare_process()
    search_package(command)
    try:
        line = replace(line, words=with_data_choice(command.name, as_meant(command.name, line.words), notes))
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


def register_resolvers(*, without_pytorch: bool = False) -> None:
    """Registers the functions below, which YAML calls as ``${share:...}``; some import PyTorch, or return None."""
    register: Any = OmegaConf.register_resolver if HYDRA_1_4 else OmegaConf.register_new_resolver  # renamed in 2.4
    for resolver in (
        devices_for_ddp,
        fast_bfloat16,
        first_metric,
        home,
        mode_of,
        precision,
        run_name,
        share,
        sweep_name,
    ):
        is_left_out = without_pytorch and resolver in (devices_for_ddp, fast_bfloat16, precision)
        register(resolver.__name__, (lambda *_: None) if is_left_out else resolver, replace=True)
    register("process_suffix", lambda: f"_process_{rank}" if (rank := launched_rank(os.environ)) else "", replace=True)


def home() -> str:
    """Returns the user's home folder on any system.

    Raises:
        ConfigError: there is none.
    """
    try:
        return Path.home().as_posix()
    except RuntimeError as error:
        raise ConfigError(f"there is no home folder ({error}); set SOFTSEARCH_CACHE=FOLDER") from error


def devices_for_ddp(accelerator: str) -> int:
    """Returns the number of GPUs, or 2 for processes on the CPU if there is none or none is wanted."""
    return _gpus(accelerator) or 2


def fast_bfloat16(accelerator: str) -> bool:
    """Tells whether the hardware that ``trainer.accelerator`` chooses computes bfloat16 fast."""
    import torch

    if _gpus(accelerator):
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_tile"))


def first_metric(metric: Any) -> str:
    """Returns the name of the first metric of the group, which is used where a single number decides."""
    names = metric.items() if isinstance(metric, DictConfig) else ()  # other values are refused later
    return next((str(name) for name, node in names if node is not None), "none")


def mode_of(monitor: str, *, _root_: DictConfig) -> str:
    """Returns ``max`` for a metric where higher is better, else ``min``, as for losses.

    Raises:
        ConfigError: neither is.
    """
    name, metrics = str(monitor).removeprefix("val/"), _root_.get("metric")
    node = metrics.get(name) if isinstance(metrics, DictConfig) else None
    if node is None:
        return "min"
    higher_is_better = True
    with suppress(Exception):  # reported where the metric is built
        higher_is_better = build(node).higher_is_better
    if higher_is_better is None:
        raise ConfigError(f"{name} cannot be monitored: neither higher nor lower is better; choose another metric")
    return "max" if higher_is_better else "min"


def precision(accelerator: str) -> str:
    """Returns ``bf16-mixed`` if the hardware computes in bfloat16, else ``32-true``."""
    return "bf16-mixed" if fast_bfloat16(accelerator) else "32-true"


def share(part: float, steps: object) -> int:
    """Returns a share of the steps of a run, at least one, so that schedules scale with ``trainer.max_steps``.

    Raises:
        ConfigError: ``steps`` is not a number, or there is no limit.
    """
    if not isinstance(steps, int) or steps < 0:
        raise ConfigError(
            f"trainer.max_steps is {steps!r}, but the schedule or the validations are shares of it; expected a "
            "whole number: set trainer.max_steps=N (more than the time allows if there is a trainer.max_time, which "
            "the schedule then follows), or scheduler=constant and scheduler.warmup_steps=N"
        )
    return max(1, round(part * steps))


def sweep_name() -> str | None:
    """Returns the name of the folder of this job's sweep (``-m``); None for a single run."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    return Path(HydraConfig.get().sweep.dir).name


def _gpus(accelerator: str) -> int:
    import torch

    return 0 if accelerator == "cpu" else torch.cuda.device_count()


def prepare_process() -> None:
    """Prepares a process for commands: its CPU, resolvers, warnings and log."""
    tune_cpu()
    search_own_configs()
    register_resolvers()
    logging.raiseExceptions = False  # no tracebacks if the log cannot be written, for example on a full disk
    for message in _NOT_FOR_USERS:
        warnings.filterwarnings("ignore", message=message)


def checked_options(config: DictConfig, line: CommandLine) -> Any:
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
    for field in fields(kind):
        if field.type in (Part, Parts) and config.get(field.name) is None:
            raise line.no_choice(field.name, None)
    options: Any = read_options(config, kind)
    if hasattr(options, "run_dir"):
        _check_writable(options.run_dir)
    return options


def given_values(options: Any) -> dict[str, Any]:
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
