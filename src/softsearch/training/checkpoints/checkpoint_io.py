"""Checkpoint files: written atomically, with a hash, with finite weights, and read without running code."""

import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from torch import Tensor

from softsearch.errors import CheckpointError, summarize
from softsearch.files import new_file, open_file
from softsearch.training.checkpoints.stored_archive import NotPlainError, check_pickles, check_tensors

# The hash of the zip archive that PyTorch writes is added as the archive's comment, which `unzip -z` shows.
_MAGIC, _HEX = b"softsearch sha256 ", 64
_START = struct.pack("<H", len(_MAGIC) + _HEX) + _MAGIC  # the comment's length is the last field of an archive
_NO_COMMENT = b"\0\0"
_CHUNK = 2**20  # bytes


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes to a temporary file in the same folder, flushes it to disk and renames it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Replaces ``path`` atomically: it holds the old checkpoint or the new one at every moment.

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
                f"{target} could not be written ({error.strerror or error}); what it held before is unchanged; "
                "make room or choose another folder, then continue with resume=auto"
            ) from error

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Reads a checkpoint into main memory; only tensors and plain values are ever unpickled.

        Raises:
            CheckpointError: the file is missing or damaged, or holds something else.
        """
        del map_location, weights_only  # always "cpu" and True
        return load_checkpoint(Path(path))


class _HashedFile:
    """Hashes what PyTorch writes; raises an error at the end only, because PyTorch's writer would replace it."""

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
        """Called by PyTorch; the file is flushed later."""

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
    """Reads a file of ``torch.save`` that holds ``what`` alone, in main memory; ``unreadable`` makes the error."""
    try:
        with open_file(path) as file:
            check_pickles(file)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        check_tensors(loaded, path.stat().st_size)
        return loaded
    except Exception as error:  # torch.load fails in many ways
        if isinstance(error, NotPlainError) or type(error).__name__ == "UnpicklingError":  # advises to switch that off
            raise unreadable(path, f"it holds more than {what}; nothing of it was run") from error
        raise unreadable(path, summarize(error)) from error


def check_hash(path: Path) -> None:
    """Compares a checkpoint file with its hash.

    Raises:
        CheckpointError: the file is missing, or is not what was written.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; expected a checkpoint, as in RUN/checkpoints/last.ckpt")
    with path.open("rb") as file:
        left = file.seek(0, os.SEEK_END) - len(_START) - _HEX
        file.seek(max(0, left))
        comment = file.read()
        if not comment.startswith(_START):
            raise _unreadable(path, "it does not end with its SHA-256, as a checkpoint of softsearch train does")
        file.seek(0)
        digest = hashlib.sha256()
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    digest.update(_NO_COMMENT)
    expected = comment[len(_START) :].decode(errors="replace")
    if digest.hexdigest() != expected:
        raise _unreadable(path, f"its SHA-256 is {digest.hexdigest()}, it was written with {expected}")


def _unreadable(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(
        f"{path} cannot be read as a checkpoint ({detail}); it is truncated, damaged or of another kind: "
        "take another file of its folder"
    )


def _refuse_non_finite(checkpoint: dict[str, Any], target: Path) -> None:
    """Keeps a run with non-finite weights from overwriting its checkpoint."""
    weights = {
        name: tensor
        for part in ("state_dict", "current_model_state")  # the latter if the former are an average
        for name, tensor in checkpoint.get(part, {}).items()
        if isinstance(tensor, Tensor) and tensor.is_floating_point()
    }
    non_finite = [name for name, tensor in weights.items() if not bool(tensor.isfinite().all())]
    if non_finite:
        raise CheckpointError(
            f"step {checkpoint.get('global_step')}: {len(non_finite)} of {len(weights)} weight tensors are not finite, "
            f"the first is {non_finite[0]}; {target} was not written and stays as it was. Continue from it with "
            "resume=auto and a lower optimizer.lr or trainer.gradient_clip_val"
        )
