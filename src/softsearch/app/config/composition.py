"""Configs composed by Hydra from the folders where it finds them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra.utils
from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig

import softsearch
from softsearch.app.config.init_model import with_model_of_init

CONFIGS = Path(softsearch.__file__).with_name("configs")  # in an installed package
if not CONFIGS.is_dir():
    CONFIGS = Path(softsearch.__file__).parents[2] / "configs"  # in a clone
HYDRA_1_4 = hasattr(hydra.utils, "execution_whitelist")  # it needs no version_base any more
VERSION: Mapping[str, Any] = {} if HYDRA_1_4 else {"version_base": "1.3"}
OWN = "softsearch_configs"  # a folder of the current directory


class OwnConfigs(SearchPathPlugin):
    """Lets Hydra search ``softsearch_configs`` after our configs."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Adds the folder, if there is one."""
        if Path(OWN).is_dir():
            search_path.append(OWN, f"file://{Path(OWN).absolute()}")


def search_own_configs() -> None:
    """Registers the above, also where a launcher's process or a test has begun Hydra's list of plugins anew."""
    Plugins.instance().register(OwnConfigs)


def further_configs() -> Iterator[str]:
    """Yields, for the log, the folders that the running command's configs come from beside ours."""
    for source in HydraConfig.get().runtime.config_sources:
        folder = Path(source.path)
        if source.schema == "file" and folder != CONFIGS:
            names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
            refused = [f"not {name}, because softsearch's wins" for name in names if (CONFIGS / name).is_file()]
            used = [name for name in names if not (CONFIGS / name).is_file()]
            yield f"configs of {folder} are used: {', '.join([*used, *refused]) or 'none'}"


@contextmanager
def config_loader() -> Iterator[ConfigLoader]:
    """Hydra with our configs, for ``hydra.compose``, also within a command that Hydra runs."""
    search_own_configs()
    running = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONFIGS), **VERSION):
            yield GlobalHydra.instance().config_loader()
    finally:
        GlobalHydra.instance().hydra = running


def composed(command: str, *overrides: str, with_hydra: bool = False) -> DictConfig:
    """Returns the config of a command with these options; that of Hydra itself is in it if ``with_hydra``.

    Raises:
        HydraException: there is no such key or choice.
    """
    with config_loader():
        return compose(command, with_model_of_init(spelled_out(overrides)), return_hydra_config=with_hydra)


def spelled_out(words: Iterable[str]) -> list[str]:
    """Returns the words of a command line with ``init=RUN`` as ``init.ckpt=RUN``, beside which options can stand."""
    return [re.sub(r"^(\+*)init=(?!\s*\{)", r"\1init.ckpt=", word) for word in words]
