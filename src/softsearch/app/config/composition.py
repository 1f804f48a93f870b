"""Composition of configs by Hydra, from all config folders and from the run named by ``init=RUN``."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

import softsearch
from softsearch.app.config.allowed_classes import check_allowed, read_trust, trusting
from softsearch.app.config.language_pairs import with_pairs, with_tags
from softsearch.app.config.resolvers import HYDRA_1_4, register_resolvers
from softsearch.commands import CORE, Command
from softsearch.errors import CheckpointError, ConfigError
from softsearch.text.languages import languages_of

if TYPE_CHECKING:
    from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents

CONFIGS = Path(softsearch.__file__).with_name("configs")  # in an installed package
if not CONFIGS.is_dir():
    CONFIGS = Path(softsearch.__file__).parents[2] / "configs"  # in a clone
VERSION: Mapping[str, Any] = {} if HYDRA_1_4 else {"version_base": "1.3"}
OWN = "softsearch_configs"  # a folder of the current directory
_CHOOSES_MODEL = re.compile(r"[+~]*(experiment|model(/\w+)?)(@\S+)?(=|$)")
_INIT = "init"  # as in model=init
_BRACES = re.compile(
    r"([+~]*[\w./@]+=)([^'\"\[\]]*(?<!\$)\{[^{}:'\"]*,[^{}:'\"]*\}[^'\"\[\]]*)\Z"
)  # Hydra's have colons
_of_packages: list[Path] = []  # config folders of the running command's package


class OwnConfigs(SearchPathPlugin):
    """Lets Hydra search the folders of ``own_folders`` after our configs."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Adds the folders."""
        for folder in own_folders():
            search_path.append(OWN, f"file://{folder.absolute()}")


def own_folders() -> list[Path]:
    """Returns ``softsearch_configs`` and the configs of the running command's package, if they exist."""
    return [folder for folder in (Path(OWN), *_of_packages) if folder.is_dir()]


def search_package(command: Command) -> None:
    """Lets Hydra search the folder ``configs`` next to the module of an installed command."""
    if command.name not in CORE:
        with suppress(ModuleNotFoundError):  # raised again when the command runs
            found = find_spec(command.run.partition(":")[0])
            _of_packages[:] = [Path(found.origin).with_name("configs")] if found and found.origin else []


def search_own_configs() -> None:
    """Registers ``OwnConfigs``, also in a launcher's process or a test with a new list of Hydra's plugins."""
    Plugins.instance().register(OwnConfigs)


def extra_config_dirs() -> Iterator[str]:
    """Yields lines for the log that name the folders, other than ours, of the running command's configs."""
    for source in HydraConfig.get().runtime.config_sources:
        folder = Path(source.path)
        if source.schema == "file" and folder not in (CONFIGS, *_of_packages):
            names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml"))
            refused = [f"not {name}, because softsearch's wins" for name in names if (CONFIGS / name).is_file()]
            used = [name for name in names if not (CONFIGS / name).is_file()]
            if names:
                yield f"configs of {folder} are used: {', '.join([*used, *refused])}"


@contextmanager
def config_loader() -> Iterator[ConfigLoader]:
    """Prepares ``hydra.compose`` with our configs, also within a command that Hydra runs."""
    search_own_configs()
    if not OmegaConf.has_resolver("share"):  # outside a command
        register_resolvers()
    running = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONFIGS), **VERSION):
            yield GlobalHydra.instance().config_loader()
    finally:
        GlobalHydra.instance().hydra = running


def composed(command: str, *overrides: str, with_hydra: bool = False) -> DictConfig:
    """Returns the config of a command with these options, and Hydra's own config if ``with_hydra``.

    Raises:
        HydraException: there is no such key or choice.
    """
    with config_loader():
        return compose(command, with_model_of_init(expand_shorthands(overrides)), return_hydra_config=with_hydra)


def choices(group: str) -> list[str]:
    """Returns the names of the choices in a config group, in all folders that Hydra searches by itself."""
    with config_loader() as loader:
        return sorted(loader.get_group_options(group))


def expand_shorthands(words: Iterable[str]) -> list[str]:
    """Returns the words of a command line with ``init=RUN`` as ``init.ckpt=RUN``, so that options can be added.

    Pairs of files become nodes (``with_pairs``), and patterns such as ``{de,fr}/*.po`` are quoted.
    """
    words = [_BRACES.sub(lambda match: match[1] + quoted(match[2]), word) for word in words]
    return with_pairs([re.sub(r"^(\+*)init=(?!\s*\{)", r"\1init.ckpt=", word) for word in words])


def with_model_of_init(words: Sequence[str]) -> list[str]:
    """Returns the words of a command line, with ``model=init`` added if ``init.ckpt`` but no model is typed.

    That choice has the options of the run's model; further words such as ``model.encoder.dropout=0.2`` change them. For
    a model that reads the languages of source and target in tags, one corpus is read with them.

    A vocabulary grows by at most as many pieces as the run has, unless ``tokenizer.vocab_size`` is typed.

    Raises:
        ConfigError: a size of the vocabulary is typed, but the run's own is kept.
        CheckpointError: the run has no checkpoint, or its model has a class that needs ``trust``.
    """
    keys = ("init.ckpt", "init.vocabulary", "name", "trust")
    typed = {key: value_of(word) for key in keys for word in words if word.startswith(f"{key}=")}
    path = typed.get("init.ckpt")
    if isinstance(path, ChoiceSweep):
        path = getattr(path.list[0], "text", path.list[0])  # a run with another model is refused when training starts
    if not isinstance(path, str):
        return [*words]
    vocabulary = str(typed.get("init.vocabulary", "keep"))
    with suppress(CheckpointError):  # raised again where the checkpoint is needed; a claim trains it first
        if vocabulary == "keep" and languages_of(contents_of_init(Path(path)).tokenizers[0]).sources:
            words = with_tags(words)
    words = [*words, *_size_of_vocabulary(words, vocabulary, Path(path))]
    if any(map(_CHOOSES_MODEL.match, words)):
        return words
    contents = contents_of_init(Path(path))
    node = {
        key: value for key, value in contents.config["model"].items() if key != "init"
    }  # the weights come from the file
    name = str(contents.config["name"])
    if "${" in json.dumps([node, name]):
        raise CheckpointError(
            f"{contents.path}: model or name of its config has an interpolation, which is not allowed in a file"
        )
    with trusting(read_trust(typed.get("trust", ()))):
        check_allowed(contents.path, "model", node, ("src_vocab_size", "tgt_vocab_size"))
    ConfigStore.instance().store(_INIT, OmegaConf.create(node), "model", provider="softsearch")
    return [*words, f"model={_INIT}", *([] if "name" in typed else [f"name={quoted(name)}"])]


def _size_of_vocabulary(words: Sequence[str], vocabulary: str, init: Path) -> list[str]:
    sized = [word for word in words if re.match(r"[+]*tokenizer\.(src_)?vocab_size=", word)]
    if sized and vocabulary == "keep":
        with suppress(CheckpointError):  # raised again where the checkpoint is needed; a claim trains it first
            own = contents_of_init(init).config["tokenizer"].get("vocab_size")
            if changed := [word for word in sized if word.partition("=")[2] != str(own)]:
                raise ConfigError(
                    f"init={init} keeps its vocabulary, so {changed[0]} would have no effect; remove it, or "
                    "set init.vocabulary=grow, which adds at most that many pieces, or init.vocabulary=own"
                )
    if vocabulary != "grow" or sized:
        return []
    return [f"tokenizer.vocab_size={contents_of_init(init).tokenizers[1].vocab_size}"]


def contents_of_init(path: Path) -> "CheckpointContents":
    """Returns the contents of the checkpoint ``init.ckpt``, read once for the config and for training.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    from softsearch.training.checkpoints.folder import checkpoint_file

    file = checkpoint_file(path)
    return _read(file, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=1)
def _read(file: Path, _changed: int) -> "CheckpointContents":
    from softsearch.training.checkpoints.checkpoint_contents import read_contents

    return read_contents(file)


def quoted(text: str) -> str:
    """Returns a text as the value of an option, in quotes if Hydra would read it as anything else (a=b, 1)."""
    with suppress(HydraException):
        if value_of(f"key={text}") == text:
            return text
    return QuotedString(text, Quote.single).with_quotes()


def value_of(word: str) -> Any:
    """Returns the value of a word such as ``key=value``, as Hydra reads it."""
    (override,) = OverridesParser.create().parse_overrides([word])
    return override.value()


def typed_options() -> list[str]:
    """Returns the options typed after the command's name, such as ``search.beam=10``; none outside a command."""
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def option_key(typed: str) -> str:
    """Returns the key of a typed option."""
    return typed.partition("=")[0].lstrip("+~")
