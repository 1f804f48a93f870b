"""What PyTorch's exporter does again for every graph, done once: it is most of the time of tests that export."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pytest


def read_torchlib_once() -> None:
    """Makes later exports of this process share the tables of operators, if PyTorch keeps them where it does today."""
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
