"""What libraries read or trace anew each time, done once in a process that composes, exports or forks many times."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def read_configs_once() -> None:
    """Lets Hydra parse a YAML file once for all compositions of this process, if it reads files where it does today."""
    from hydra._internal.sources_registry import SourcesRegistry
    from hydra.core.plugins import Plugins

    Plugins.instance()  # registers the sources
    for scheme in ("file", "pkg"):
        source, parsed = SourcesRegistry.instance().resolve(scheme), dict[Any, Any]()

        def load_config(
            self: Any, config_path: str, load: Any = source.load_config, parsed: dict[Any, Any] = parsed
        ) -> Any:
            file = Path(self.path, self._normalize_file_name(config_path)).absolute()
            stat = file.stat() if file.exists() else None  # those of packages do not change
            key = (self.provider, file, stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino))
            if key not in parsed:
                parsed[key] = load(self, config_path)
            return copy.deepcopy(parsed[key])  # a composition moves the nodes of what it merges

        source.load_config = load_config  # type: ignore[method-assign]


def read_torchlib_once() -> None:
    """Lets exports of this process share the tables of operators, if PyTorch keeps them where it does today."""
    with suppress(ImportError, AttributeError):
        from torch._export import utils
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        ONNXRegistry.from_torchlib = staticmethod(cache(ONNXRegistry.from_torchlib))
        utils._materialize_cpp_cia_ops = cache(utils._materialize_cpp_cia_ops)


@contextmanager
def traced_once(programs: dict[str, Any]) -> Iterator[None]:
    """Exports of one model trace each of its modules once: what else a bundle gets is added to the graphs.

    Args:
        programs: the traced modules by the names of their classes, which later blocks take from there.
    """
    import torch

    trace = torch.onnx.export

    def export(module: torch.nn.Module, *arguments: Any, **options: Any) -> Any:
        name = type(module).__name__
        if name not in programs:
            programs[name] = trace(module, *arguments, **options)
        return programs[name]  # whose model_proto is written anew each time

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.onnx, "export", export)
        yield
