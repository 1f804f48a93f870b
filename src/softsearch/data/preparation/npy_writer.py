"""NumPy files that are written piece by piece, so that memory does not grow with them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray


class ArrayWriter:
    """A ``.npy`` file of one dimension, byte for byte what ``numpy.save`` writes; closed by :func:`array_writer`."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._file, self._dtype, self._count = path.open("wb"), np.dtype(dtype), 0
        self._write_header()  # NumPy leaves room in it for any count
        self._header_bytes = self._file.tell()

    def append(self, values: Sequence[int] | NDArray[np.integer]) -> None:
        """Writes the next values."""
        array = np.asarray(values, dtype=self._dtype)
        self._file.write(array.tobytes())
        self._count += len(array)

    def close(self) -> None:
        """Completes the header with the number of values."""
        self._file.seek(0)
        self._write_header()
        assert self._file.tell() == self._header_bytes
        self._file.close()

    def _write_header(self) -> None:
        header = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._count,)}
        npy.write_array_header_1_0(self._file, header)


@contextmanager
def array_writer(path: Path, dtype: DTypeLike) -> Iterator[ArrayWriter]:
    """Opens ``path`` for writing and completes it at the end."""
    writer = ArrayWriter(path, dtype)
    try:
        yield writer
    finally:
        writer.close()


class TokenWriter:
    """The two files of a :class:`softsearch.data.dataset.TokenStore`; closed by :func:`token_writer`."""

    def __init__(self, ids: ArrayWriter, offsets: ArrayWriter) -> None:
        self._ids, self._offsets, self._end = ids, offsets, 0
        offsets.append([0])

    def append(self, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> None:
        """Writes the next sentences: all their ids in one row, and how many each has."""
        self._ids.append(ids)
        self._offsets.append(self._end + np.cumsum(lengths, dtype=np.int64))
        self._end += len(ids)


def id_type(vocab_size: int) -> type[np.integer]:
    """The smallest type of NumPy that holds all ids."""
    return np.uint16 if vocab_size <= 2**16 else np.int32


@contextmanager
def token_writer(path: Path, vocab_size: int) -> Iterator[TokenWriter]:
    """Opens ``path.ids.npy`` and ``path.offsets.npy`` for writing and completes them at the end."""
    with ExitStack() as stack:
        ids = stack.enter_context(array_writer(Path(f"{path}.ids.npy"), id_type(vocab_size)))
        yield TokenWriter(ids, stack.enter_context(array_writer(Path(f"{path}.offsets.npy"), np.int64)))


def flat(sentences: Sequence[Sequence[int]], vocab_size: int) -> tuple[NDArray[np.integer], NDArray[np.int32]]:
    """All ids in one row, and the length of each sentence."""
    lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
    return np.fromiter(chain.from_iterable(sentences), id_type(vocab_size), int(lengths.sum())), lengths
