"""Archives that readers read in different ways, or that ask for more memory than they have bytes, are refused."""

import io
import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import load_plain
from tests.support.written import with_end_in_comment, with_entry_under_many_names

_ONE = torch.ones(2**14)
_TAIL = 22 + 20 + 56  # bytes of PyTorch's end record, with those of large archives


class Made:
    """What a call makes when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def made(content: object, *, new: bool = True) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=new)
    return file.getvalue()


def with_second_directory(data: bytes) -> bytes:
    """Each of two readers finds its own: where the end record says, and before the end record."""
    start = struct.unpack_from("<Q", data, len(data) - _TAIL + 48)[0]
    tail = bytearray(data[-_TAIL:])
    struct.pack_into("<Q", tail, 56 + 8, len(data) - _TAIL + len(data[start:-_TAIL]))
    return data[:-_TAIL] + data[start:-_TAIL] + bytes(tail)


def large(size: int) -> Made:
    storage = torch.zeros(4)._typed_storage()
    return Made(torch._utils._rebuild_tensor_v2, storage, 0, (size,), (1,), False, OrderedDict())


def with_attributes(**attributes: object) -> torch.Tensor:
    tensor = torch.zeros(4)
    vars(tensor).update(attributes)
    return tensor


HOSTILE = {
    "two directories": (with_second_directory(made({"w": _ONE})), "its directory is not where it should be"),
    "an end in the comment": (with_end_in_comment(made({"w": _ONE})), "its directory is not where it should be"),
    "something behind it": (made({"w": _ONE}) + b"\0" * 30, "its comment has another length"),
    "only its start": (made({"w": _ONE})[:-_TAIL], "it has no end"),
    "one entry under many names": (with_entry_under_many_names(made({"w": _ONE})), "its entries overlap"),
    "one tensor under many names": (made({f"w{i}": _ONE for i in range(99)}), "its tensors have 6,488,064 bytes, but"),
    "nested": (made([({f"w{i}": [_ONE.view(2, -1)] for i in range(99)},)]), "its tensors have 6,488,064 bytes, but"),
    "a tensor by its size": (made({"w": Made(torch.Tensor, 2**28)}), "its tensors have 1,073,741,824 bytes, but"),
    "attributes of a tensor": (
        made({"w": with_attributes(**{f"a{i}": _ONE for i in range(99)})}),
        "its tensors have 6,488,080 bytes, but",
    ),
    "a size in an attribute": (
        made({"w": with_attributes(a=Made(torch.Tensor, 2**28))}),
        "its tensors have 1,073,741,840 bytes, but",
    ),
    "a size beyond its storage": (made({"w": large(2**24)}), "storage that is not resizable"),
    "an old file of the kind": (made({"w": large(2**24)}, new=False), "storage has wrong byte size"),
    "bytes by their number": (made({"w": Made(bytearray, 2**24)}), "it holds more than weights; none of its code"),
    "an old file of bytes": (made(Made(bytearray, 2**24), new=False), "it holds more than weights"),
    "a copy of a view": (
        made(Made(torch._utils._rebuild_device_tensor_from_cpu_tensor, _ONE, torch.float64, "cpu", False)),
        "it holds more than weights",
    ),
}


def refuse(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(f"{path.name}: {detail}")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str, tmp_path: Path) -> None:
    data, message = HOSTILE[name]
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        load_plain(tmp_path / "x.bin", "weights", refuse)


@pytest.mark.parametrize("new", [True, False])
def test_a_good_file_is_read(new: bool, tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(_ONE.clone())
    content = {"shared": _ONE, "tied": _ONE.view(2, -1), "head": _ONE, "p": parameter, "half": _ONE[:3].half()}
    content |= {"sets": {1, (2, 3)}, "complex": 1j, "bytes": b"abc", "type": torch.bfloat16}
    (tmp_path / "x.bin").write_bytes(made(content, new=new))
    found = load_plain(tmp_path / "x.bin", "weights", refuse)
    assert found.keys() == content.keys()
    assert torch.equal(found["tied"], content["tied"])
