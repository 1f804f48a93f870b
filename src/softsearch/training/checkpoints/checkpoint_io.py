"""Checkpoint files: written atomically with a hash and only with finite weights, read without running code."""

import hashlib
import os
import pickletools
import re
import struct
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from torch import Tensor

from softsearch.errors import CheckpointError, summarize
from softsearch.files import new_file, open_file

# The hash of the zip archive that PyTorch writes is added as the archive's comment, which `unzip -z` shows.
_MAGIC, _HEX = b"softsearch sha256 ", 64
_START = struct.pack("<H", len(_MAGIC) + _HEX) + _MAGIC  # the comment's length is the last field of an archive
_NO_COMMENT = b"\0\0"
_CHUNK = 2**20  # bytes
# Archive readers look for the directory in different places, and allocate the sizes in it. So it must be where all of
# them look, nothing may be compressed, and the entries together may not be larger than the file.
_FIRST = b"PK\3\4"
_END = struct.Struct("<4s4H2LH")  # signature, disks, entries; size and offset of the directory, length of the comment
_END_64, _LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_MAX_COMMENT = 2**16
_PICKLES = 5  # in files before PyTorch 1.6: a number, the format, the machine, the content, the names of the storages
_PLAIN = re.compile(  # what a pickle may name; other names that PyTorch allows can allocate more than the file holds
    r"(collections (OrderedDict|Counter)|_codecs encode|(builtins|__builtin__) (set|complex)|torch(\.cuda)? \w+"
    r"|torch\.storage \w+|torch\.nn\.parameter Parameter|torch\._utils _rebuild_(tensor|tensor_v2|parameter)"
    r"|torch\._tensor _rebuild_from_type_v2)"  # tensors from FSDP
)
_MAX_SHARING = 8  # names of one tensor; the embeddings of some models have four


class NotPlainError(ValueError):
    """A pickle names something other than plain values and tensors."""


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes to a temporary file in the same folder, flushes it to disk and renames it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Replaces ``path`` atomically: it always holds either the old checkpoint or the new one.

        Raises:
            CheckpointError: a weight is not finite, or the file cannot be written; ``path`` is unchanged.
        """
        if storage_options is not None:
            raise TypeError("storage_options are not supported; checkpoints are local files")
        target = Path(path)
        _refuse_non_finite(checkpoint, target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with new_file(target) as file:
                hashed = _HashedFile(file)
                torch.save(checkpoint, cast(IO[bytes], hashed))
                hashed.add_comment()
        except OSError as error:
            raise CheckpointError(
                f"{target} could not be written ({error.strerror or error}); its previous content is unchanged; "
                "free some space or choose another folder, then continue with resume=auto"
            ) from error

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Reads a checkpoint into main memory, whatever is asked for; only tensors and plain values are ever unpickled.

        Raises:
            CheckpointError: the file is missing or damaged, or holds something else.
        """
        return load_checkpoint(Path(path))


class _HashedFile:
    """Hashes what PyTorch writes; raises errors only at the end, because PyTorch's writer would replace them."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: memoryview) -> int:
        if self.error is None:
            try:
                self.file.write(data)
            except OSError as error:
                self.error = error
        self.digest.update(data)
        return data.nbytes

    def flush(self) -> None:
        """Does nothing when PyTorch calls it; the file is flushed later."""

    def add_comment(self) -> None:
        if self.error is not None:
            raise self.error
        self.file.seek(-len(_NO_COMMENT), os.SEEK_END)
        self.file.write(_START + self.digest.hexdigest().encode())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Reads a checkpoint file into plain values and tensors in main memory.

    Raises:
        CheckpointError: the file is missing or damaged, or holds something else.
    """
    check_hash(path)
    loaded = load_plain(path, "tensors and plain values", _unreadable)
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__}, expected a checkpoint of softsearch train")
    return loaded


def load_plain(path: Path, what: str, unreadable: Callable[[Path, str], CheckpointError]) -> Any:
    """Reads a file of ``torch.save`` that may hold only ``what``, into main memory; ``unreadable`` makes the error."""
    try:
        with open_file(path) as file:
            check_pickles(file)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        check_tensors(loaded, path.stat().st_size)
        return loaded
    except Exception as error:  # torch.load fails in many ways
        # The message of the latter advises weights_only=False.
        if isinstance(error, NotPlainError) or type(error).__name__ == "UnpicklingError":
            raise unreadable(path, f"it holds more than {what}; none of its code was run") from error
        raise unreadable(path, summarize(error)) from error


def check_hash(path: Path) -> None:
    """Compares a checkpoint file with its hash.

    Raises:
        CheckpointError: the file is missing, or does not match its hash.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; expected a checkpoint such as RUN/checkpoints/last.ckpt")
    with path.open("rb") as file:
        left = file.seek(0, os.SEEK_END) - len(_START) - _HEX
        file.seek(max(0, left))
        comment = file.read()
        if not comment.startswith(_START):
            raise _unreadable(path, "it does not end with its SHA-256, as checkpoints of softsearch train do")
        file.seek(0)
        digest = hashlib.sha256()
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    digest.update(_NO_COMMENT)
    expected = comment[len(_START) :].decode(errors="replace")
    if digest.hexdigest() != expected:
        raise _unreadable(path, f"its SHA-256 is {digest.hexdigest()}, expected {expected}, with which it was written")


def _unreadable(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(
        f"{path} cannot be read as a checkpoint ({detail}); it is truncated, damaged or another kind of file: "
        "use another file in its folder"
    )


def _refuse_non_finite(checkpoint: dict[str, Any], target: Path) -> None:
    """Keeps a run with non-finite weights from overwriting its checkpoint."""
    weights = {
        name: tensor
        for part in ("state_dict", "current_model_state")  # the latter: weights whose average is the former
        for name, tensor in checkpoint.get(part, {}).items()
        if isinstance(tensor, Tensor) and tensor.is_floating_point()
    }
    non_finite = [name for name, tensor in weights.items() if not bool(tensor.isfinite().all())]
    if non_finite:
        raise CheckpointError(
            f"step {checkpoint.get('global_step')}: {len(non_finite)} of {len(weights)} weight tensors are not finite, "
            f"the first is {non_finite[0]}; {target} was not replaced. Continue from it with "
            "resume=auto and a lower optimizer.lr or trainer.gradient_clip_val"
        )


def is_archive(file: BinaryIO) -> bool:
    """Tells whether PyTorch reads a file as an archive; files before PyTorch 1.6, as in OPUS-MT, are pickles."""
    file.seek(0)
    return file.read(len(_FIRST)) == _FIRST


def check_archive(file: BinaryIO) -> list[ZipInfo]:
    """Returns the entries of an archive.

    Raises:
        ValueError, BadZipFile: it is damaged, compressed or ambiguous, or its entries are larger than the file.
    """
    size = file.seek(0, os.SEEK_END)
    _check_end(file, size)
    with ZipFile(file) as archive:
        entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != ZIP_STORED:  # a few bytes could expand to any size
            raise ValueError(f"{entry.filename[:80]} in it is compressed")
    if sum(max(entry.file_size, entry.compress_size) for entry in entries) > size:
        raise ValueError("its entries overlap")
    return entries


def check_pickles(file: BinaryIO) -> None:
    """Checks that the pickles of a file of ``torch.save`` name nothing but plain values and tensors.

    Raises:
        NotPlainError: a pickle names something else.
        ValueError: the file is damaged; see also ``check_archive``.
    """
    if is_archive(file):
        entries = check_archive(file)
        with ZipFile(file) as archive:  # PyTorch ignores case
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
        ValueError: they are larger, because one tensor has many names.
    """
    nodes: list[Any] = [loaded]
    seen: set[int] = set()
    storages: dict[int, int] = {}
    total = 0
    while nodes:
        node = nodes.pop()
        if isinstance(node, Tensor):
            nodes.append(vars(node))  # tensors from FSDP have attributes, which may be tensors too
            if not node.is_meta and not node.is_sparse:
                storage = node.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
                total += min(node.numel() * node.element_size(), storage.nbytes())  # a view may repeat a few bytes
        elif isinstance(node, dict | list | tuple | set) and id(node) not in seen:
            seen.add(id(node))
            nodes += [*node.keys(), *node.values()] if isinstance(node, dict) else node
    if sum(storages.values()) > size or total > _MAX_SHARING * size:
        raise ValueError(f"its tensors have {max(total, sum(storages.values())):,} bytes, but the file has {size:,}")


def _check_end(file: BinaryIO, size: int) -> None:
    """Checks that the last end record belongs to the file, and that the directory ends where it begins."""
    tail_size = min(size, _END.size + _MAX_COMMENT)
    file.seek(size - tail_size)
    tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, max(0, tail_size - _END.size) + 4)
    if at < 0:
        raise ValueError("it has no end record")
    *_, length, start, comment = _END.unpack_from(tail, at)
    end = size - tail_size + at
    if end + _END.size + comment != size:
        raise ValueError("its comment has another length")
    file.seek(max(0, end - _LOCATOR.size - _END_64.size))
    before = file.read(_LOCATOR.size + _END_64.size)
    if before[-_LOCATOR.size :].startswith(b"PK\6\7"):  # larger archives have both, and those of PyTorch always do
        end -= len(before)
        located = _LOCATOR.unpack(before[-_LOCATOR.size :])[2]
        *_, length, start = _END_64.unpack_from(before)
        if located != end or not before.startswith(b"PK\6\6"):
            raise ValueError("its end record is not where it should be")
    if start + length != end:
        raise ValueError("its directory is not where it should be")
