"""A second device without any hardware: its tensors lie in main memory, but do not mix with those of the CPU.

They say that they are on PyTorch's ``meta`` device, and yet have values: every operation is computed on the CPU, after
it has been checked that all of its tensors are there. So code fails here as on a GPU if it makes a mask or an index
on the CPU, or hands a tensor to NumPy without copying it first.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model

DEVICE = torch.device("meta")
_aten = torch.ops.aten
_MOVES = {_aten.to, _aten._to_copy, _aten.copy_}  # between devices
_READ_THE_CPU = {_aten.index, _aten.index_put_, _aten._index_put_impl_}  # as CUDA's do


class There(Tensor):
    """A tensor on the other device; ``inside`` has its values."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> "There":
        with torch.inference_mode(mode=False):  # a view of a weight may be one of a search, too
            made = Tensor._make_wrapper_subclass(
                cls,
                inside.size(),
                strides=inside.stride(),
                storage_offset=inside.storage_offset(),
                dtype=inside.dtype,
                layout=inside.layout,
                device=DEVICE,
                requires_grad=False,
            )
        made.inside = inside
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"There({self.inside!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.inside.__reduce_ex__(protocol)

    def tolist(self) -> Any:  # PyTorch's own refuses subclasses, as does the next one
        return self.inside.tolist()

    def __format__(self, form: str) -> str:
        return self.inside.__format__(form)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Runs one operation where its tensors are."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, There)]
    asked = kwargs.get("device")
    on_other = asked is not None and torch.device(asked).type == DEVICE.type
    if not there and not on_other:
        return func(*args, **kwargs)
    reads_the_cpu = func.overloadpacket in _READ_THE_CPU and isinstance(args[0], There)
    if not reads_the_cpu and func.overloadpacket not in _MOVES:
        strays = [tuple(t.shape) for t in tensors if not isinstance(t, There) and t.dim()]
        if strays:
            raise RuntimeError(f"{func}: expected all tensors on {DEVICE}, found some on the CPU: {strays}")
    if on_other:
        kwargs = kwargs | {"device": "cpu"}
    plain_args, plain_kwargs = tree_map_only(There, lambda t: t.inside, (args, kwargs))
    found = func(*plain_args, **plain_kwargs)
    if asked is not None and not on_other:  # to the CPU
        return found
    if torch.Tag.inplace_view in func.tags:  # the new shape is the wrapper's too
        with no_dispatch():
            func(*args, **kwargs)
    inputs = {id(tensor.inside): tensor for tensor in there}
    return tree_map_only(Tensor, lambda t: inputs[id(t)] if id(t) in inputs else There(t), found)


class OtherDevice(TorchDispatchMode):
    """Within it tensors can be made on the other device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


@contextmanager
def other_device() -> Iterator[torch.device]:
    """Makes the device usable inside, also for autocasting, which PyTorch has not for its name: nothing is cast."""

    def autocast(device_type: str, *args: Any, **options: Any) -> Any:
        return nullcontext() if device_type == DEVICE.type else usual(device_type, *args, **options)

    def is_enabled(device_type: str | None = None) -> bool:
        return device_type != DEVICE.type and (asked() if device_type is None else asked(device_type))

    def tensor(data: Any, *, device: Any = None, **options: Any) -> Tensor:
        made: Tensor = new(data, **options)  # PyTorch's leaves a new tensor on "meta" without values
        return made if device is None else made.to(device)

    usual, asked, new = torch.autocast, torch.is_autocast_enabled, torch.tensor
    with pytest.MonkeyPatch.context() as patch, OtherDevice():
        patch.setattr(torch, "autocast", autocast)
        patch.setattr(torch, "is_autocast_enabled", is_enabled)
        patch.setattr(torch, "tensor", tensor)
        # Parameters that are moved stay the objects that they were, also shared ones, as with a GPU.
        patch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
        yield DEVICE


def moved(name: str, *overrides: str) -> Seq2Seq:
    """A model with dropout."""
    model = small_model(name, *overrides).train()
    for module in model.modules():
        if hasattr(module, "rate"):
            module.rate = 0.3
    return model.to("meta")
