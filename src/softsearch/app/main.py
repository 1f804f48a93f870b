"""Wraps a command in Hydra: composition, run folders, and errors that fit on one screen."""

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
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.app import machine
from softsearch.app.instantiate import nearest
from softsearch.errors import SoftsearchError

_NOT_FOR_USERS = (  # Lightning's remarks about things that are as they should be
    r".*isinstance\(treespec, LeafSpec\)",  # it asks PyTorch 2.13 in a way that will go
    "Checkpoint directory .* exists and is not empty",  # a resumed run's
    "You're resuming from a checkpoint that ended before the epoch ended",  # our datamodule knows where
    "The .* does not have many workers",  # one process collates token ids fast enough
)
CONFIGS = Path(__file__).parents[3] / "configs"


def command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Decorates the body of a command.

    Errors meant for users end the process with 1 and their message; a misspelt key is answered with the nearest one.
    """

    def decorate(body: Callable[[DictConfig], None]) -> Callable[[], None]:
        def guarded(config: DictConfig) -> None:
            try:
                body(config)
            except SoftsearchError as error:
                _fail(str(error))

        def main() -> None:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra hands us its errors instead of printing them
            register_resolvers()
            for message in _NOT_FOR_USERS:
                warnings.filterwarnings("ignore", message=message)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
            try:
                hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)(guarded)()
            except (HydraException, OmegaConfBaseException) as error:
                _fail(_explain(error, config_name))

        return main

    return decorate


def register_resolvers() -> None:
    """Makes what the machine has available to YAML, as ``${devices_for_ddp:}`` and ``${precision:}``."""
    for resolver in (machine.devices_for_ddp, machine.precision):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(1)


def _explain(error: Exception, config_name: str) -> str:
    """Hydra's message in one line, with the nearest key or option."""
    message = str(error)
    override = re.search(r"Could not override '([^']+)'", message)
    if override:
        wrong = override[1]
        return f"there is no config key {wrong!r}; {nearest(wrong, _known_keys(config_name))}"
    choice = re.search(r"Could not find '([^']+)/([^'/]+)'", message) or re.search(
        r"In '[^']+': Could not find '(.+)/(.+)'", message
    )
    if choice:
        options = [path.stem for path in (CONFIGS / choice[1]).glob("*.yaml")]
        return f"there is no {choice[1]}={choice[2]}; {nearest(choice[2], options)}"
    return message.strip()


def _known_keys(config_name: str) -> list[str]:
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
