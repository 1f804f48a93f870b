"""Checkpoints made by hand, with all that every run's checkpoint has."""

import copy
import functools
import hashlib
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import torch

from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN, SaveOrigin

CONFIG: dict[str, Any] = {"name": "x", "model": {}, "data": {}, "tokenizer": {}}


@functools.cache
def tokenizers() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """Two of a few characters."""
    src, tgt = (train_tokenizer([text] * 3, kind="char", vocab_size=12) for text in ("abc", "xyzw"))
    return src, tgt


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.canary,)


def hashed(data: bytes) -> bytes:
    """The bytes of an archive without a comment, with the right hash in the place of it."""
    comment = b"softsearch sha256 " + hashlib.sha256(data).hexdigest().encode()
    return data[:-2] + struct.pack("<H", len(comment)) + comment


def save_unchecked(content: object, path: Path) -> None:
    """Writes a file with the right hash, whatever it holds."""
    archive = io.BytesIO()
    torch.save(content, archive)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(hashed(archive.getvalue()))


def by_hand(weights: dict[str, Any], step: int, **others: Any) -> dict[str, Any]:
    """A checkpoint with these weights; ``others`` are other entries beside them."""
    return {ORIGIN: SaveOrigin(CONFIG, tokenizers()).origin, "state_dict": weights, "global_step": step, **others}


def with_end_in_comment(data: bytes) -> bytes:
    """An archive with a second end record, in the comment of the first."""
    return data[:-2] + struct.pack("<H", 22) + data[-22:]


def with_entry_under_many_names(data: bytes) -> bytes:
    """An archive with 20 more names of its largest entry."""
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        largest = max(archive.filelist, key=lambda entry: entry.file_size)
        for number in range(20):
            again = copy.copy(largest)
            again.filename = f"{largest.filename}{number}"
            archive.filelist.append(again)
        archive._didModify = True
    return file.getvalue()
