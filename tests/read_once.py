"""What libraries read anew each time, done once in a process that composes, exports or forks many times."""

import logging
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from softsearch.app.config.composition import CONFIGS

SESSION = "SOFTSEARCH_TESTS_SESSION"  # a variable of the environment: a folder


def flush_nothing() -> None:
    """Lets this process write without waiting for the disk: no test turns the power off."""
    os.fsync = lambda fd: None


def read_configs_once() -> None:
    """Lets Hydra parse a YAML file once for all compositions of this process, if it reads files where it does today.

    And place and merge files of ours once for all configs that are made of the same ones.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.sources_registry import SourcesRegistry
    from hydra.core.plugins import Plugins

    stays = {"hydra.conf", str(CONFIGS), ""}  # what no test changes; the last one are classes

    def once(method: Callable[..., Any], found: dict[str, bytes]) -> Callable[..., Any]:
        def call(self: Any, *, repo: Any, **given: Any) -> Any:
            if "model/init" in (key := repr(given)) or not stays.issuperset(s.path for s in repo.get_sources()):
                return method(self, repo=repo, **given)  # that choice is another run's model each time
            if key not in found:
                found[key] = pickle.dumps(method(self, repo=repo, **given))
            return pickle.loads(found[key])

        return call

    for name in ("_compose_config_from_defaults_list", "_load_single_config"):
        setattr(ConfigLoaderImpl, name, once(getattr(ConfigLoaderImpl, name), {}))
    Plugins.instance()  # registers the sources
    for scheme in ("file", "pkg", "structured"):
        source, parsed = SourcesRegistry.instance().resolve(scheme), dict[Any, Any]()

        def load_config(
            self: Any, config_path: str, load: Any = source.load_config, parsed: dict[Any, Any] = parsed
        ) -> Any:
            if "model/init" in config_path:  # as above
                return load(self, config_path)
            file = Path(self.path, self._normalize_file_name(config_path)).absolute()
            stat = file.stat() if file.exists() else None  # those of packages do not change
            key = (self.provider, file, stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino))
            if key not in parsed:
                parsed[key] = pickle.dumps(load(self, config_path))
            return pickle.loads(parsed[key])  # a composition moves the nodes of what it merges

        source.load_config = load_config  # type: ignore[method-assign]


def read_torchlib_once() -> None:
    """Lets exports of this process share the tables of operators, if PyTorch keeps them where it does today.

    And keep no results of operators on shapes: where sizes are symbols, to look for one takes longer than to compute.
    And write no notes for PyTorch's own log of compilations, which it makes before it looks whether there is one.
    """
    with suppress(ImportError, AttributeError):
        import torch._dynamo.config
        from torch._export import utils
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        ONNXRegistry.from_torchlib = staticmethod(cache(ONNXRegistry.from_torchlib))
        utils._materialize_cpp_cia_ops = cache(utils._materialize_cpp_cia_ops)
        torch._dynamo.config.fake_tensor_cache_enabled = False
        logging.getLogger("torch.__trace").handlers.clear()


def spell_once() -> None:
    """Lets the corpora of this process that have a seed begin with the same sentences, spelled out by the first."""
    from softsearch.data.corpora import spellout

    endless, begun = spellout._sentences, dict[Any, tuple[list[str], Iterator[str]]]()

    def sentences(lang: Any, seed: int) -> Iterator[str]:
        spelled, further = begun.setdefault((lang, seed), ([], endless(lang, seed)))
        for place in count():
            if place == len(spelled):
                spelled.append(next(further))
            yield spelled[place]

    spellout._sentences = sentences
