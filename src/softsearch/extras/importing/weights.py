"""Reads weights by name from files of other programs, without executing anything or unpacking files to disk."""

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
from softsearch.extras.importing.config_json import read_object, refuse_other_kind
from softsearch.files import open_file
from softsearch.training.parts import check_archive, is_weight, load_plain

Array = NDArray[np.generic]
_SUFFIX = ".npy"
SAFETENSORS, PICKLE, _INDEX = "model.safetensors", "pytorch_model.bin", ".index.json"


class Weights:
    """Weights that a model takes one by one; missing, unused and misshapen ones are refused by name.

    Args:
        path: the file, for messages.
        tensors: the weights in it.

    Raises:
        CheckpointError: a weight is not floating point, or has a value that is not finite.
    """

    def __init__(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        self.path, self.tensors, self.taken = path, dict[str, Tensor](), set[str]()
        for name, tensor in tensors.items():
            if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
                raise CheckpointError(f"{path}: {name} is {tensor.dtype}, expected floating point; use another file")
            self.tensors[name] = tensor.float()
            if not bool(self.tensors[name].isfinite().all()):
                raise CheckpointError(f"{path}: {name} has values that are not finite; use another file")

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str, *shape: int) -> Tensor:
        """Returns the weight with this name.

        Raises:
            CheckpointError: it is missing or has another shape.
        """
        tensor = self.tensors.get(name)
        if tensor is None or tuple(tensor.shape) != shape:
            found = "missing" if tensor is None else tuple(tensor.shape)
            raise CheckpointError(
                f"{self.path}: {name} is {found}, but its config expects {shape}; use a file and a config that belong "
                "together"
            )
        self.taken.add(name)
        return tensor

    def finish(self) -> None:
        """Refuses weights that have not been taken.

        Raises:
            CheckpointError: there are some.
        """
        if left := sorted(self.tensors.keys() - self.taken):
            names = ", ".join(left[:3])
            raise CheckpointError(
                f"{self.path} has {len(left)} weights that its config does not describe ({names:.200}); use the file "
                "and the config of one model"
            )


def read_weights(folder: Path) -> Weights:
    """Reads the weights in a Hugging Face folder, from safetensors if there are both kinds of file.

    Large models are in several files, which an index names.

    Raises:
        CheckpointError: there is no file, it is damaged, or it contains anything other than weights.
    """
    names = [name + ending for name in (SAFETENSORS, PICKLE) for ending in ("", _INDEX)]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise CheckpointError(
            f"{folder} has neither {SAFETENSORS} nor {PICKLE}; expected one, or its parts and {_INDEX}"
        )
    is_pickle = path.name.startswith(PICKLE)
    tensors: dict[str, Tensor] = {}
    for part in _parts(path) if path.name.endswith(_INDEX) else [path]:
        refuse_other_kind(part, zip_is_fine=is_pickle)
        _check_regular(part)
        for name, tensor in _pickled(part) if is_pickle else _safetensors(part):
            if name in tensors:
                raise CheckpointError(f"{part} has {name:.80}, which another part has too; use files of one model")
            tensors[name] = tensor
    return Weights(path, tensors)


def _check_regular(path: Path) -> None:
    """Refuses a pipe, which an index may name and which would be waited for."""
    try:
        open_file(path).close()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _parts(index: Path) -> list[Path]:
    """Returns the files next to an index that it names, sorted."""
    files = read_object(index).get("weight_map")
    named = files.values() if isinstance(files, dict) else ()
    if not named or not all(isinstance(name, str) and Path(name).name == name for name in named):
        raise CheckpointError(f"{index} does not name files in its folder by weight (weight_map); use another copy")
    return [index.with_name(name) for name in sorted({*named})]


def _safetensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                yield name, file.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        raise _unreadable(path, summarize(error)) from error


def _pickled(path: Path) -> Iterator[tuple[str, Tensor]]:
    loaded = load_plain(path, "weights", _unreadable)
    if not isinstance(loaded, dict) or not all(isinstance(n, str) and is_weight(w) for n, w in loaded.items()):
        raise _unreadable(path, "it contains other things than weights by name")
    yield from loaded.items()


def _unreadable(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(f"{path} cannot be read as weights ({detail}); it is damaged or another kind of file")


def read_npz(path: Path) -> dict[str, Array]:
    """Returns the arrays of an ``.npz`` file by name.

    Each header is compared with the size in the file before the array is read, so that a short file cannot claim a
    large amount of memory.

    Raises:
        CheckpointError: the file is missing, damaged or compressed, or contains Python objects.
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
    except Exception as error:  # damaged archives and headers raise many kinds
        raise CheckpointError(
            f"{path} cannot be read as an .npz file of numbers ({summarize(error)}); none of its code was run: use "
            "another copy of it"
        ) from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read_header(file)
        data = bytearray(file.read())  # writable, so that the array is
    if dtype.hasobject:
        raise ValueError(f"{entry.filename[:80]} holds Python objects, expected numbers")
    array: Array = np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")  # checks the size
    return array
