"""Counts where a program would wait for a GPU: operations on tensors of ``tests.support.other_device``."""

from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support.other_device import There

_aten = torch.ops.aten
_COPIES = {_aten._to_copy, _aten.copy_}
_INDEXED = {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
_BY_VALUE = {  # whose result or its shape depends on values, which the program has to know
    _aten._local_scalar_dense,
    _aten.nonzero,
    _aten.masked_select,
    _aten.unique_dim,
    _aten._unique,
    _aten._unique2,
    _aten.unique_consecutive,
    _aten.bincount,
    _aten.repeat_interleave,
    _aten.equal,
    _aten.is_nonzero,
    _aten.multinomial,
}


class Synchronisations(TorchDispatchMode):
    """``found`` has the operations that wait, with how often. Enter it inside of ``other_device``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.usual = There.tolist

    def __enter__(self) -> "Synchronisations":
        def tolist(tensor: There) -> Any:
            self.found["tolist"] += 1
            return self.usual(tensor)

        There.tolist = tolist  # type: ignore[method-assign]  # PyTorch's is no operation
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        There.tolist = self.usual  # type: ignore[method-assign]
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if waits(func.overloadpacket, args, kwargs):
            self.found[str(func.overloadpacket)] += 1
        return func(*args, **kwargs)


def waits(packet: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether CUDA's implementation of an operation waits for the device."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    if packet in _COPIES:
        source = args[1] if packet is _aten.copy_ else args[0]
        target = args[0].device if packet is _aten.copy_ else kwargs.get("device")
        if target is None or torch.device(target).type == source.device.type:
            return False
        asynchronous = args[2] if packet is _aten.copy_ and len(args) > 2 else kwargs.get("non_blocking", False)
        return isinstance(source, There) or not asynchronous
    if not any(isinstance(tensor, There) for tensor in tensors):
        return False
    if packet in _INDEXED:  # masks have to be counted; indices on the CPU have to be copied
        indices = [leaf for leaf in tree_leaves(args[1]) if isinstance(leaf, Tensor)]
        return any(index.dtype is torch.bool or not isinstance(index, There) for index in indices)
    return packet in _BY_VALUE
