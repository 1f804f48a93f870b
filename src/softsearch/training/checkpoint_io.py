"""Checkpoints: written whole or not at all, read without executing anything."""

import os
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO

from softsearch.errors import CheckpointError


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes to a temporary file in the same folder, flushes it to the disk and renames it."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Replaces ``path`` in one step: it holds the old checkpoint or the new one at every moment."""
        if storage_options is not None:
            raise TypeError("storage_options are not supported; checkpoints are local files")
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}-{os.getpid()}")
        try:
            with temporary.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def load_checkpoint(
        self, path: str | Path, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Reads a checkpoint; only tensors and plain values are ever unpickled.

        Raises:
            CheckpointError: the file is missing or damaged, or holds something else.
        """
        del weights_only  # always
        return load_checkpoint(Path(path), map_location)


def load_checkpoint(path: Path, map_location: Any | None = "cpu") -> dict[str, Any]:
    """Reads a checkpoint file into plain values and tensors.

    Raises:
        CheckpointError: the file is missing or damaged, or holds something else.
    """
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; expected a checkpoint, as in RUN/checkpoints/last.ckpt")
    try:
        loaded = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:  # torch.load fails in many ways, all of which mean the same to the user
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(
            f"{path} cannot be read as a checkpoint ({detail}); it is truncated, damaged or of another kind: "
            "take another file of its folder"
        ) from error
    if not isinstance(loaded, dict):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__}, expected a checkpoint of src/train.py")
    return loaded
