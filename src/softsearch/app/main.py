"""Wraps a command in Hydra: composition, run folders, and errors that fit on one screen."""

import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app import machine
from softsearch.app.instantiate import nearest
from softsearch.errors import SoftsearchError

log = logging.getLogger(__name__)
_NOT_FOR_USERS = (  # Lightning's remarks about things that are as they should be
    r".*isinstance\(treespec, LeafSpec\)",  # it asks PyTorch 2.13 in a way that will go
    "Checkpoint directory .* exists and is not empty",  # a resumed run's
    "You're resuming from a checkpoint that ended before the epoch ended",  # our datamodule knows where
    "Detected call of `lr_scheduler.step",  # the first step may be skipped
    "The .* does not have many workers",  # one process collates token ids fast enough
)
_PLUGINS = {
    "joblib": "pip install 'softsearch[sweep]'",
    "submitit_slurm": "pip install 'softsearch[sweep]'",
    "ray": "pip install hydra-ray-launcher",  # its pins do not go with ours
}
CONFIGS = Path(__file__).parents[3] / "configs"


def command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Decorates the body of a command.

    Errors meant for users end the process with 1 and their message; a misspelt key is answered with the nearest one.
    """

    def decorate(body: Callable[[DictConfig], None]) -> Callable[[], None]:
        def guarded(config: DictConfig) -> None:
            _prepare_process()  # again: a launcher may have started this one
            try:
                body(config)
            except SoftsearchError as error:
                if HydraConfig.get().mode == RunMode.MULTIRUN:
                    log.error("error: %s", error)
                    raise  # the other jobs go on, and Hydra raises it again after the last
                _fail(str(error))

        def main() -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra hands us its errors instead of printing them
            _prepare_process()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
            try:
                hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)(guarded)()
            except SoftsearchError as error:
                _fail(f"a job of the sweep failed: {error}")
            except (HydraException, OmegaConfBaseException) as error:
                _fail(explain(error, config_name))

        return main

    return decorate


def _prepare_process() -> None:
    register_resolvers()
    for message in _NOT_FOR_USERS:
        warnings.filterwarnings("ignore", message=message)


def register_resolvers() -> None:
    """Makes what is known only now available to YAML, as ``${devices_for_ddp:}`` and ``${sweep_name:}``."""
    for resolver in (machine.devices_for_ddp, machine.precision, sweep_name):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def sweep_name() -> str | None:
    """The name of the folder of the sweep (``-m``) that this job belongs to; None for a run by itself."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    return Path(HydraConfig.get().sweep.dir).name


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(1)


def explain(error: Exception, config_name: str) -> str:
    """Hydra's message in one line, with the nearest key or option, or with the plugin that is missing."""
    message = str(error)
    override = re.search(r"Could not override '([^']+)'", message)
    if override:
        wrong = override[1]
        return f"there is no config key {wrong!r}; {nearest(wrong, _known_keys(config_name))}"
    choice = re.search(r"Could not find '([^']+)/([^'/]+)'", message) or re.search(
        r"In '[^']+': Could not find '(.+)/(.+)'", message
    )
    if choice and choice[1] == "hydra/launcher":
        return f"launcher={choice[2]} needs a plugin that is not installed: {_PLUGINS.get(choice[2], 'see its manual')}"
    if choice:
        options = [path.stem for path in (CONFIGS / choice[1]).glob("*.yaml")]
        return f"there is no {choice[1]}={choice[2]}; {nearest(choice[2], options)}"
    return message.strip()


def _known_keys(config_name: str) -> list[str]:
    GlobalHydra.instance().clear()  # of the command that asks, which is about to fail
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        groups = [folder.name for folder in CONFIGS.iterdir() if folder.is_dir()]
        return [*_flatten(compose(config_name)), *groups]


def _flatten(node: DictConfig, path: str = "") -> Iterator[str]:
    for key in map(str, node):
        inner = f"{path}.{key}" if path else key
        yield inner
        plain = not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key)
        if plain and isinstance(node[key], DictConfig):
            yield from _flatten(node[key], inner)
