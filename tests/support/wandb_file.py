"""Reads what an offline run wrote: LevelDB's log format (blocks of 32 KiB) with a protocol buffer in each record."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import Message

_FILE_HEADER, _RECORD_HEADER, _BLOCK = 7, struct.Struct("<IHB"), 32768
_WHOLE, _LAST = 1, 4  # kinds of records that end one

# Keys that a training and a validation write.
SPEED = {"tokens/s", "train/padding_efficiency", "train/peak_memory_mb", "train/elapsed_seconds"}
TRAINING = (
    {"train/loss", "lr"}
    | SPEED
    | {f"grad_norm/{part}" for part in ("embeddings", "encoder", "attention", "decoder", "output", "total")}
)
VALIDATION = {f"val/{name}" for name in ("loss", "perplexity", "bleu", "chrf", "exact_match")} | {
    "bleu_by_length/01-05",
    "bleu_by_length/06-10",
}


class OfflineRun(NamedTuple):
    """All that the test of a dashboard asks about."""

    run: Any  # RunRecord: run_id, run_group, job_type, display_name, ...
    config: dict[str, Any]
    history: list[dict[str, Any]]  # a row for each call of log
    artifacts: list[Any]  # ArtifactRecord
    exit_code: int | None  # None where the run was killed
    files: Path

    @property
    def keys(self) -> set[str]:
        """Everything that was ever logged."""
        return {key for row in self.history for key in row}

    def scalars(self) -> dict[str, dict[int, float]]:
        """Each number by its key and Lightning's step."""
        found: dict[str, dict[int, float]] = {}
        for row in self.history:
            for key, value in row.items():
                if isinstance(value, int | float) and not key.startswith("_") and key != "trainer/global_step":
                    found.setdefault(key, {})[row["trainer/global_step"]] = float(value)
        return found


def read_run(path: Path) -> OfflineRun:
    """Reads ``run-ID.wandb``."""
    run, config, history, artifacts, exit_code = None, {}, [], [], None
    for record in _records(path.read_bytes()):
        match record.WhichOneof("record_type"):
            case "run":
                run = record.run
                config |= _values(record.run.config.update)
            case "config":
                config |= _values(record.config.update)
            case "history":
                history.append(_values(record.history.item))
            case "artifact":
                artifacts.append(record.artifact)
            case "exit":
                exit_code = record.exit.exit_code
    return OfflineRun(run, config, history, artifacts, exit_code, path.parent / "files")


def _records(data: bytes) -> Iterator[Any]:
    from wandb.proto import wandb_internal_pb2

    assert data.startswith(b":W&B")
    at, content = _FILE_HEADER, b""
    while at + _RECORD_HEADER.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _RECORD_HEADER.size:  # no header begins in the last bytes of a block
            at += left
            continue
        _, length, kind = _RECORD_HEADER.unpack_from(data, at)
        at += _RECORD_HEADER.size
        content += data[at : at + length]
        at += length
        if kind in (_WHOLE, _LAST):
            record: Message = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            yield record
            content = b""


def _values(items: Any) -> dict[str, Any]:
    """Plain values; a nested key is a dictionary in a dictionary."""
    found: dict[str, Any] = {}
    for item in items:
        *outer, last = item.nested_key or [item.key]
        inner = found
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = json.loads(item.value_json)
    return found
