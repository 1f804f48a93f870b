"""Functions that YAML calls, such as ``${share:0.1,${trainer.max_steps}}``."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import hydra.utils
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.processes import launched_rank, run_name
from softsearch.app.config.validation import build
from softsearch.errors import ConfigError

HYDRA_1_4 = hasattr(hydra.utils, "execution_whitelist")  # no longer needs version_base, and renamed this


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
