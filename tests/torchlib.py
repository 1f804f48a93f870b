"""PyTorch's library of ONNX functions, read once per process because its exporter reads it for every graph."""

from contextlib import suppress
from functools import cache


def read_torchlib_once() -> None:
    """Makes later exports of this process share the library, if PyTorch keeps it where it does today."""
    with suppress(ImportError, AttributeError):
        from torch.onnx._internal.exporter._registration import onnxscript_apis

        onnxscript_apis.get_torchlib_ops = cache(onnxscript_apis.get_torchlib_ops)
