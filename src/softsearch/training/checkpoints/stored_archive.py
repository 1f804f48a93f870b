"""Archives of ``torch.save`` and ``numpy.savez`` from anybody, checked before they are read.

Their readers differ in where they look for the directory, and allocate what it says. So it stands where all of them
look, nothing is compressed, and the parts together are no larger than the file.
"""

import os
import pickletools
import re
import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from torch import Tensor

_FIRST = b"PK\3\4"
_END = struct.Struct("<4s4H2LH")  # signature, disks, entries; size and offset of the directory, length of the comment
_END_64, _LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_MAX_COMMENT = 2**16
_PICKLES = 5  # of files before PyTorch 1.6: a number, the format, the machine, the content, the names of the storages
_PLAIN = re.compile(  # what a pickle may name: others of those that PyTorch allows take memory that the file lacks
    r"(collections (OrderedDict|Counter)|_codecs encode|(builtins|__builtin__) (set|complex)|torch(\.cuda)? \w+"
    r"|torch\.storage \w+|torch\.nn\.parameter Parameter|torch\._utils _rebuild_(tensor|tensor_v2|parameter)"
    r"|torch\._tensor _rebuild_from_type_v2)"  # tensors of FSDP
)
_MAX_SHARING = 8  # names of a tensor; four have the embeddings of some models


class NotPlainError(ValueError):
    """A pickle names something other than plain values and tensors."""


def is_archive(file: BinaryIO) -> bool:
    """Whether PyTorch reads a file as an archive; those of PyTorch before 1.6, as many of OPUS-MT, are pickles."""
    file.seek(0)
    return file.read(len(_FIRST)) == _FIRST


def check_archive(file: BinaryIO) -> list[ZipInfo]:
    """Returns the entries of an archive.

    Raises:
        ValueError, BadZipFile: it is damaged, compressed, read in several ways, or has more in it than its size.
    """
    size = file.seek(0, os.SEEK_END)
    _check_end(file, size)
    with ZipFile(file) as archive:
        entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != ZIP_STORED:  # a few bytes would stand for any number
            raise ValueError(f"{entry.filename[:80]} in it is compressed")
    if sum(max(entry.file_size, entry.compress_size) for entry in entries) > size:
        raise ValueError("its entries overlap")
    return entries


def check_pickles(file: BinaryIO) -> None:
    """Checks that the pickles of a file of ``torch.save`` name nothing but plain values and tensors.

    Raises:
        NotPlainError: one does.
        ValueError: the file is damaged; see also :func:`check_archive`.
    """
    if is_archive(file):
        entries = check_archive(file)
        with ZipFile(file) as archive:  # PyTorch looks for any case
            streams = [archive.read(entry) for entry in entries if entry.filename.lower().endswith("data.pkl")]
        operations: Iterator[Any] = chain.from_iterable(map(pickletools.genops, streams))
    else:
        file.seek(0)
        operations = chain.from_iterable(pickletools.genops(file) for _ in range(_PICKLES))
    for operation, name, _ in operations:
        if operation.name == "GLOBAL" and not _PLAIN.fullmatch(name):
            raise NotPlainError(f"it names {name.replace(' ', '.')[:80]}")


def check_tensors(loaded: object, size: int) -> None:
    """Checks that the tensors in loaded values are no larger than their file, of ``size`` bytes.

    Raises:
        ValueError: they are, because one tensor has many names.
    """
    nodes: list[Any] = [loaded]
    seen: set[int] = set()
    storages: dict[int, int] = {}
    total = 0
    while nodes:
        node = nodes.pop()
        if isinstance(node, Tensor):
            nodes.append(vars(node))  # tensors of FSDP have attributes, which may be tensors too
            if not node.is_meta and not node.is_sparse:
                storage = node.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
                total += min(node.numel() * node.element_size(), storage.nbytes())  # a view repeats a few bytes
        elif isinstance(node, dict | list | tuple | set) and id(node) not in seen:
            seen.add(id(node))
            nodes += [*node.keys(), *node.values()] if isinstance(node, dict) else node
    if sum(storages.values()) > size or total > _MAX_SHARING * size:
        raise ValueError(f"its tensors have {max(total, sum(storages.values())):,} bytes, the file {size:,}")


def _check_end(file: BinaryIO, size: int) -> None:
    """Checks that the last end record is that of the file, and that the directory ends where it begins."""
    tail_size = min(size, _END.size + _MAX_COMMENT)
    file.seek(size - tail_size)
    tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, max(0, tail_size - _END.size) + 4)
    if at < 0:
        raise ValueError("it has no end")
    *_, length, start, comment = _END.unpack_from(tail, at)
    end = size - tail_size + at
    if end + _END.size + comment != size:
        raise ValueError("its comment has another length")
    file.seek(max(0, end - _LOCATOR.size - _END_64.size))
    before = file.read(_LOCATOR.size + _END_64.size)
    if before[-_LOCATOR.size :].startswith(b"PK\6\7"):  # larger archives have both, and PyTorch's have them always
        end -= len(before)
        located = _LOCATOR.unpack(before[-_LOCATOR.size :])[2]
        *_, length, start = _END_64.unpack_from(before)
        if located != end or not before.startswith(b"PK\6\6"):
            raise ValueError("its end is elsewhere")
    if start + length != end:
        raise ValueError("its directory is elsewhere")
