"""Weights in files of other programs, by name, read as numbers: nothing is executed or unpacked to the disk."""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from softsearch.errors import CheckpointError, summarize
from softsearch.extras.importing.config_json import refuse_other_kind
from softsearch.files import open_file
from softsearch.training.checkpoints.checkpoint_contents import is_weight
from softsearch.training.checkpoints.checkpoint_io import check_archive, load_plain

Array = NDArray[np.generic]
_SUFFIX = ".npy"
SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"


class Weights:
    """Weights that a model takes one by one; those of another shape, missing or left over are refused by name.

    Args:
        path: the file, for messages.
        tensors: its weights.

    Raises:
        CheckpointError: one has another type than floating point, or a value that is not finite.
    """

    def __init__(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        self.path, self.tensors, self.taken = path, dict[str, Tensor](), set[str]()
        for name, tensor in tensors.items():
            if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
                raise CheckpointError(f"{path}: {name} is {tensor.dtype}, expected floating point; take another file")
            self.tensors[name] = tensor.float()
            if not bool(self.tensors[name].isfinite().all()):
                raise CheckpointError(f"{path}: {name} has values that are not finite; take another file")

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str, *shape: int) -> Tensor:
        """The weight of this name.

        Raises:
            CheckpointError: it is missing or has another shape.
        """
        tensor = self.tensors.get(name)
        if tensor is None or tuple(tensor.shape) != shape:
            found = "missing" if tensor is None else tuple(tensor.shape)
            raise CheckpointError(
                f"{self.path}: {name} is {found}, its config expects {shape}; take a file and a config that go together"
            )
        self.taken.add(name)
        return tensor

    def finish(self) -> None:
        """Refuses weights that nothing has taken.

        Raises:
            CheckpointError: there are some.
        """
        if left := sorted(self.tensors.keys() - self.taken):
            names = ", ".join(left[:3])
            raise CheckpointError(
                f"{self.path} has {len(left)} weights that its config does not speak of ({names:.200}); it is of "
                "another model"
            )


def read_weights(folder: Path) -> Weights:
    """The weights of a Hugging Face folder, of its safetensors if there are both.

    Raises:
        CheckpointError: there is no file, it is damaged, or it holds anything besides weights.
    """
    path = folder / SAFETENSORS if (folder / SAFETENSORS).is_file() else folder / PICKLE
    if not path.is_file():
        raise CheckpointError(f"{folder} has neither {SAFETENSORS} nor {PICKLE}; expected one, in one part")
    refuse_other_kind(path, zip_is_fine=path.name == PICKLE)
    return Weights(path, dict(_safetensors(path) if path.name == SAFETENSORS else _pickled(path)))


def _safetensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is not a mapping
                yield name, file.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        raise _unreadable(path, summarize(error)) from error


def _pickled(path: Path) -> Iterator[tuple[str, Tensor]]:
    loaded = load_plain(path, "weights", _unreadable)
    if not isinstance(loaded, dict) or not all(isinstance(n, str) and is_weight(w) for n, w in loaded.items()):
        raise _unreadable(path, "it holds other things than weights by name")
    yield from loaded.items()


def _unreadable(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(f"{path} cannot be read as weights ({detail}); it is damaged or of another kind")


def read_npz(path: Path) -> dict[str, Array]:
    """Returns the arrays of an ``.npz`` file by name.

    An array is read after its header has been compared with its size in the file, so that a short file cannot ask for
    memory that it does not fill.

    Raises:
        CheckpointError: the file is missing, damaged, compressed, or holds Python objects.
    """
    refuse_other_kind(path, zip_is_fine=True)
    try:
        with open_file(path) as file:
            entries = check_archive(file)
            names = [entry.filename.removesuffix(_SUFFIX) for entry in entries]
            if len({*names}) < len(names):
                raise ValueError("two arrays have one name")
            with zipfile.ZipFile(file) as archive:
                return {name: _read(archive, entry) for name, entry in zip(names, entries, strict=True)}
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); expected an .npz file") from error
    except Exception as error:  # damaged archives and headers raise many
        raise CheckpointError(
            f"{path} cannot be read as an .npz file of numbers ({summarize(error)}); nothing of it was run: take "
            "another copy of it"
        ) from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read_header(file)
        data = bytearray(file.read())  # writable, as the array then is
    if dtype.hasobject:
        raise ValueError(f"{entry.filename[:80]} holds Python objects, expected numbers")
    array: Array = np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")  # of this size only
    return array
