"""Commands wrapped in Hydra: composition, run folders, and errors that fit on one screen."""

import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn, get_type_hints

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Sweep
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app.config.allowed_classes import read_trust, trusting
from softsearch.app.config.composition import CONFIGS, HYDRA_1_4, VERSION, composed
from softsearch.app.config.options import OPTIONS, Part, Parts
from softsearch.app.config.validation import build, flatten, nearest, read_options
from softsearch.app.cpu import tune_cpu
from softsearch.app.process import end_on_signals, missing_package, raise_on_signals
from softsearch.errors import ConfigError, SoftsearchError, printable

log = logging.getLogger(__name__)
_NOT_FOR_USERS = (  # Lightning's warnings about intended behaviour
    r".*isinstance\(treespec, LeafSpec\)",  # deprecated since PyTorch 2.13
    "Checkpoint directory .* exists and is not empty",  # a resumed run's
    "You're resuming from a checkpoint that ended before the epoch ended",  # our datamodule knows the position
    "Detected call of `lr_scheduler.step",  # the first step may be skipped
    "The .* does not have many workers",  # one process collates token ids fast enough
)
_PLUGINS = {
    "joblib": "pip install 'softsearch[sweep]'",
    "submitit_slurm": "pip install 'softsearch[sweep]'",
    "ray": "pip install hydra-ray-launcher",  # its pins conflict with ours
}
_ONE_CHOICE = [field.name for field in fields(OPTIONS["train"]) if field.type is Part]
_MAIN = {**VERSION, **({"execution_whitelist": ["softsearch.app.console.*"]} if HYDRA_1_4 else {})}  # of logging


def run(command: str, work: str, options: Sequence[str] | None = None) -> None:
    """Runs a command; an error meant for users is printed and ends the process, with exit code 2 for wrong usage.

    Args:
        command: the name of its config.
        work: full name of the command's function, imported after the options have been checked; it takes the options,
            or a parameter annotated as ``DictConfig`` takes the config.
        options: as typed; None for those of ``sys.argv``.
    """
    argv = sys.argv

    def job(config: DictConfig) -> None:
        sys.argv = argv  # Lightning starts its other processes with it
        _prepare_process()  # again, because a launcher may have started this process
        try:
            checked = _read_options(config, command)
            module, _, name = work.rpartition(".")
            function = getattr(import_module(module), name)
            raise_on_signals()
            with trusting(read_trust(getattr(checked, "trust", ()))):
                function(config if DictConfig in get_type_hints(function).values() else checked)
        except ModuleNotFoundError as error:
            _fail(missing_package(command, error))
        except (SoftsearchError, HydraException, OmegaConfBaseException, OSError) as error:
            message, code = explain(error, command), _exit_code(error)
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("error: %s", message)
                kind = ConfigError if code == ConfigError.exit_code else SoftsearchError
                raise kind(message) from error  # Hydra runs the other jobs and then raises it again
            _fail(message, code)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors instead of printing them
    end_on_signals()
    _prepare_process()
    try:
        sys.argv = [argv[0], *(argv[1:] if options is None else options)]  # which Hydra reads
        _check_arguments(sys.argv[1:], command)
        hydra.main(config_path=str(CONFIGS), config_name=command, **_MAIN)(job)()
    except SoftsearchError as error:
        _fail(f"a job of the sweep failed: {error}", error.exit_code)
    except (HydraException, OmegaConfBaseException) as error:
        _fail(explain(error, command), _exit_code(error))
    except OSError as error:
        _fail(f"the run's folder cannot be written: {explain(error, command)}; set hydra.run.dir=FOLDER")
    except KeyboardInterrupt:
        sys.exit(130)


def register_resolvers() -> None:
    """Registers the functions below, which YAML calls as ``${share:...}``; PyTorch is imported in the call."""
    register: Any = OmegaConf.register_resolver if HYDRA_1_4 else OmegaConf.register_new_resolver  # renamed in 2.4
    for resolver in (devices_for_ddp, fast_bfloat16, first_metric, mode_of, precision, share, sweep_name):
        register(resolver.__name__, resolver, replace=True)


def devices_for_ddp(accelerator: str) -> int:
    """Returns the number of GPUs, or 2, for processes on the CPU, if there is none or none is wanted."""
    return _gpus(accelerator) or 2


def fast_bfloat16(accelerator: str) -> bool:
    """Returns whether the hardware that ``trainer.accelerator`` chooses computes in bfloat16."""
    import torch

    if _gpus(accelerator):
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_tile"))


def first_metric(metric: Any) -> str:
    """Returns the name of the first metric of the group, which decides where one number must."""
    names = metric.items() if isinstance(metric, DictConfig) else ()  # another value is refused later
    return next((str(name) for name, node in names if node is not None), "none")


def mode_of(monitor: str, *, _root_: DictConfig) -> str:
    """Returns ``max`` for a metric where higher is better, else ``min``, as for losses."""
    name, metrics = str(monitor).removeprefix("val/"), _root_.get("metric")
    node = metrics.get(name) if isinstance(metrics, DictConfig) else None
    if node is None:
        return "min"
    with suppress(Exception):  # which is reported where the metric is built
        return "max" if build(node).higher_is_better else "min"
    return "max"


def precision(accelerator: str) -> str:
    """Returns ``bf16-mixed`` if the hardware computes in bfloat16, else ``32-true``."""
    return "bf16-mixed" if fast_bfloat16(accelerator) else "32-true"


def share(part: float, steps: int) -> int:
    """Returns a share of the steps of a run, at least one, so that a schedule follows ``trainer.max_steps``.

    Raises:
        ConfigError: they are not a number.
    """
    if not isinstance(steps, int):
        raise ConfigError(f"trainer.max_steps is {steps!r}, expected a whole number; change it")
    return max(1, round(part * steps))


def sweep_name() -> str | None:
    """Returns the name of the folder of this job's sweep (``-m``); None for a single run."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    return Path(HydraConfig.get().sweep.dir).name


def _gpus(accelerator: str) -> int:
    import torch

    return 0 if accelerator == "cpu" else torch.cuda.device_count()


def _prepare_process() -> None:
    tune_cpu()
    register_resolvers()
    logging.raiseExceptions = False  # a log that cannot be written, as on a full disk, prints no tracebacks
    for message in _NOT_FOR_USERS:
        warnings.filterwarnings("ignore", message=message)


def _check_arguments(arguments: list[str], command: str) -> None:
    """Refuses arguments to which Hydra would reply with its usage or a traceback."""
    usage = io.StringIO()
    try:
        with redirect_stderr(usage):
            typed, unknown = get_args_parser().parse_known_args(arguments)
    except SystemExit as end:
        if not end.code:
            raise
        _fail(usage.getvalue().strip().splitlines()[-1].partition("error: ")[2], 2)
    modes = (typed.run, typed.multirun, typed.cfg, typed.info, typed.shell_completion)
    if sum(map(bool, modes)) > 1:
        _fail("only one of --run, --multirun, --cfg, --info and --shell-completion can be given", 2)
    if unknown:
        _fail(_no_flags(unknown[0], arguments, _known_keys(command)), 2)
    for override in OverridesParser.create().parse_overrides(typed.overrides):
        key, value = override.key_or_group, override.value()
        if not key:
            _fail(f"{override.input_line!r} names no key; write key=value", 2)
        several = isinstance(value, list) and key not in _ONE_CHOICE
        if (CONFIGS / key).is_dir() and not override.is_delete() and not (several or isinstance(value, str | Sweep)):
            _fail(_no_choice(key, value), 2)


def _no_flags(flag: str, arguments: list[str], keys: list[str]) -> str:
    name, _, value = flag.partition("=")
    after = [x for x in arguments[arguments.index(flag) + 1 :][:1] if not x.startswith("-") and "=" not in x]
    key = name.lstrip("-").replace("-", "_")
    advice = f"write {key}={value or ''.join(after) or 'VALUE'}" if key in keys else nearest(key, keys)
    return f"there is no option {name}, because options are written as key=value; {advice}"


def _no_choice(group: str, value: object) -> str:
    typed = "null" if value is None else repr(value)
    sweep = f", or -m {group}=NAME,NAME for a run of each" if isinstance(value, list) else ""
    return f"{group} is {typed}, expected one of {', '.join(_choices_of(group))}; set {group}=NAME{sweep}"


def _read_options(config: DictConfig, command: str) -> Any:
    """Reads the command's options, checked as far as possible without importing the lab.

    Raises:
        ConfigError: there is no such choice or key, or a value is missing, of the wrong type or out of range.
    """
    choices = HydraConfig.get().runtime.choices
    recipe, model = choices.get("recipe"), choices.get("model")
    if recipe not in (None, model) and recipe not in (recipes := _choices_of("recipe")):  # a model needs no recipe
        raise ConfigError(f"there is no recipe={recipe}; {nearest(recipe, recipes)}")
    if command not in OPTIONS:
        return None
    for field in fields(OPTIONS[command]):
        if field.type in (Part, Parts) and config.get(field.name) is None:
            raise ConfigError(_no_choice(field.name, None))
    options: Any = read_options(config, OPTIONS[command])
    if hasattr(options, "run_dir"):
        _check_writable(options.run_dir)
    return options


def _check_writable(folder: Path) -> None:
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with TemporaryFile(dir=existing) as file:
            file.write(b"\0")
    except OSError as error:
        raise SoftsearchError(
            f"run_dir is {str(folder)!r}, which cannot be written ({error.strerror}); set run_dir or hydra.run.dir to "
            "another folder, or make room"
        ) from error


def _choices_of(group: str) -> list[str]:
    """Returns the choices of a config group in all folders that Hydra searches."""
    sources = HydraConfig.get().runtime.config_sources if HydraConfig.initialized() else []
    folders = [CONFIGS, *(Path(source.path) for source in sources if source.schema == "file")]
    return sorted({path.stem for folder in folders for path in (folder / group).glob("*.yaml")})


def _fail(message: str, code: int = 1) -> NoReturn:
    print(f"error: {printable(message, keep=chr(10))}", file=sys.stderr, flush=True)
    sys.exit(code)


def _exit_code(error: Exception) -> int:
    """1 for what the machine refuses and for files, 2 for wrong usage, which all of Hydra's errors are."""
    if isinstance(error, SoftsearchError):
        return error.exit_code
    return 1 if isinstance(error, OSError) and not isinstance(error, HydraException) else 2


def explain(error: Exception, command: str) -> str:
    """Returns an error in one line; Hydra's with the nearest key or choice, or the missing plugin."""
    message = str(error).strip()
    if isinstance(error, SoftsearchError):
        return message
    if isinstance(error, OverrideParseException):
        reason = message.splitlines()[0]
        return f"{error.override!r} cannot be read ({reason}); write key=value, with quotes around text"
    if override := re.search(r"Could not override '([^']+)'", message):
        return _no_such_key(override[1], command)
    choice = re.search(r"Could not find '(.+)/(.*)'", message)
    if choice and choice[1] == "hydra/launcher":
        return f"launcher={choice[2]} needs a plugin that is not installed: {_PLUGINS.get(choice[2], 'see its manual')}"
    if choice:
        return f"there is no {choice[1]}={choice[2]}; {nearest(choice[2], _choices_of(choice[1]))}"
    if isinstance(error, OSError) and not isinstance(error, HydraException):
        return ": ".join(str(part) for part in (error.filename, error.strerror or message) if part)
    return " ".join(line.strip() for line in message.splitlines() if line.strip())


def _no_such_key(key: str, command: str) -> str:
    keys, group = _known_keys(command), key.partition(".")[0]
    if (CONFIGS / key).is_dir() and "/" in key:
        whole = key.rpartition("/")[0]
        typed = next((word for word in sys.argv if word.startswith(f"{whole}=")), whole)
        return f"{key} chooses a part that {typed} does not have; leave it out, or set another {whole}"
    if group != key and group in keys and not any(other.startswith(f"{group}.") for other in keys):
        return f"there is no {key} while {group} is null; add {group}=NAME, one of {', '.join(_choices_of(group))}"
    if group not in keys and group in _known_keys("train"):
        has = ", ".join(name for name in keys if "." not in name)
        return f"{key} is an option of train.py, and a checkpoint keeps its own; {command}.py has {has}"
    return f"there is no config key {key!r}; {nearest(key, keys)}"


def _known_keys(command: str) -> list[str]:
    """The keys of the config with the choices that were typed, as far as these can be composed."""
    config = composed(command, with_hydra=True)
    groups = [group for group in config.hydra.runtime.choices if not group.startswith("hydra/")]
    with suppress(HydraException):
        config = composed(command, *(word for word in sys.argv[1:] if word.partition("=")[0] in groups))
    keys = (key for key, _ in flatten(OmegaConf.to_container(config)) if not f"{key}.".startswith("hydra."))
    return [*dict.fromkeys([*keys, *groups])]
