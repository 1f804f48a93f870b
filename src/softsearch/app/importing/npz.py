"""NumPy archives of others, read as numbers: nothing is unpickled or unpacked to the disk."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from softsearch.errors import CheckpointError, in_short

Array = NDArray[np.generic]
_SUFFIX = ".npy"


def read_npz(path: Path) -> dict[str, Array]:
    """Returns the arrays of an ``.npz`` file by name.

    An array is read after its header has been compared with its size in the file, so that a short file cannot ask for
    memory that it does not fill.

    Raises:
        CheckpointError: the file is missing, damaged, compressed, or holds Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename.removesuffix(_SUFFIX) for entry in entries]
            if len({*names}) < len(names):
                raise ValueError("two arrays have one name")
            return {name: _read(archive, entry) for name, entry in zip(names, entries, strict=True)}
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); expected an .npz file") from error
    except Exception as error:  # damaged archives and headers raise many
        raise CheckpointError(
            f"{path} cannot be read as an .npz file of numbers ({in_short(error)}); nothing of it was run: take "
            "another copy of it"
        ) from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    if entry.compress_type != zipfile.ZIP_STORED:  # a few bytes would stand for any number
        raise ValueError(f"{entry.filename[:80]} is compressed, expected an archive that is not")
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read_header(file)
        data = bytearray(file.read())  # writable, as the array then is
    if dtype.hasobject:
        raise ValueError(f"{entry.filename[:80]} holds Python objects, expected numbers")
    array: Array = np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")  # of this size only
    return array
