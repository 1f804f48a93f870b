"""Bundles on disk: a folder that is complete and unaltered, or is not opened at all.

ONNX Runtime and SentencePiece load a file with a flipped bit silently, so every byte is checked against the manifest
before a parser sees it, and parsers get exactly the bytes that were checked. The manifest's own hash is in
``manifest.sha256``, in the format of ``sha256sum``: that one line identifies the whole bundle.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from softsearch.errors import BundleError, printable
from softsearch.files import MANIFEST
from softsearch.runtime.manifest import FileEntry, Manifest

MANIFEST_HASH = "manifest.sha256"
_MAX_MANIFEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Bundle:
    """A verified bundle: its manifest and the bytes of its files.

    Attributes:
        path: the folder.
        manifest: the contents of manifest.json.
        files: the contents by name.
        sha256: the manifest's hash, which identifies the whole bundle because the manifest lists the files' hashes.
    """

    path: Path
    manifest: Manifest = field(repr=False)
    files: dict[str, bytes] = field(repr=False)
    sha256: str

    @classmethod
    def open(cls, path: Path | str) -> "Bundle":
        """Reads a bundle folder and verifies all of it.

        Raises:
            BundleError: the folder is not a bundle, its format is newer, or a file is missing, altered, truncated, not
                listed in the manifest, or not a regular file.
        """
        folder = Path(path)
        with suppress(OSError):  # of a name that is too long, which is said below
            _refuse_others(folder)
        names = _regular_files(folder)
        if MANIFEST not in names:
            raise BundleError(f"{folder} has no {MANIFEST}; expected the folder of an exported bundle, check the path")
        try:
            text = _read_manifest(folder)
            manifest = Manifest.parse(text)
            if unlisted := names - manifest.files.keys() - {MANIFEST, MANIFEST_HASH}:
                raise BundleError(
                    f"{printable(min(unlisted))} is not listed in {MANIFEST}; a bundle holds nothing else, remove the "
                    "file"
                )
            files = {name: _verified(folder, name, entry) for name, entry in manifest.files.items()}
        except BundleError as error:
            raise BundleError(f"bundle {folder}: {error}") from error
        return cls(folder, manifest, files, hashlib.sha256(text).hexdigest())


def _refuse_others(folder: Path) -> None:
    """Refuses what people take for a bundle."""
    if not (folder / MANIFEST).is_file() and (inner := sorted(p.parent.name for p in folder.glob(f"*/{MANIFEST}"))):
        raise BundleError(f"{folder} is a folder of bundles; name one of them: {printable(', '.join(inner))}")
    if folder.suffix == ".ckpt" or (folder / "checkpoints").is_dir():
        kind = "the folder of a run" if folder.is_dir() else "a checkpoint"
        raise BundleError(f"{folder} is {kind}, expected a bundle; softsearch export ckpt={folder} out=BUNDLE")


def _regular_files(folder: Path) -> set[str]:
    try:
        entries = list(os.scandir(folder))
    except (OSError, ValueError) as error:  # ValueError: not the name of a folder
        reason = getattr(error, "strerror", None) or "its name cannot be that of a folder"
        raise BundleError(
            f"bundle {str(folder)[:200]} cannot be read ({reason}); expected the folder of an exported bundle"
        ) from error
    for entry in entries:
        if not entry.is_file(follow_symlinks=False):
            kind = "a symbolic link" if entry.is_symlink() else "not a regular file"
            raise BundleError(
                f"bundle {folder}: {printable(entry.name)} is {kind}, expected plain files only; copy the bundle whole"
            )
    return {entry.name for entry in entries}


def _read(folder: Path, name: str, *, limit: int) -> bytes:
    """Reads a file of at most ``limit`` bytes; refuses a longer one without reading it all."""
    try:
        with (folder / name).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size  # Python asks for all the memory that it may read
            content = stream.read(min(limit, size) + 1)
    except FileNotFoundError as error:
        raise BundleError(
            f"{name} is missing, expected it next to {MANIFEST}; copy or export the bundle again"
        ) from error
    except OSError as error:
        raise BundleError(f"{name} cannot be read ({error.strerror}); check its permissions") from error
    if len(content) > limit:
        raise BundleError(f"{name} is longer than {limit} bytes; copy or export the bundle again")
    return content


def _read_manifest(folder: Path) -> bytes:
    content = _read(folder, MANIFEST, limit=_MAX_MANIFEST_BYTES)
    expected, actual = _read(folder, MANIFEST_HASH, limit=len(hash_line(b""))), hash_line(content)
    if actual != expected:
        raise BundleError(
            f"{MANIFEST} has sha256 {actual[:64].decode()}, but {MANIFEST_HASH} holds {expected[:64]!r}: it was "
            "altered or damaged; copy or export the bundle again"
        )
    return content


def hash_line(manifest: bytes) -> bytes:
    """The contents of ``manifest.sha256`` for this manifest."""
    return f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}\n".encode()


def _verified(folder: Path, name: str, entry: FileEntry) -> bytes:
    content = _read(folder, name, limit=entry.size)
    if len(content) != entry.size:
        raise BundleError(
            f"{name} has {len(content)} bytes, expected {entry.size}: it is truncated; copy or export the bundle again"
        )
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != entry.sha256:
        raise BundleError(
            f"{name} has sha256 {sha256}, expected {entry.sha256}: it was altered or damaged; "
            "copy or export the bundle again"
        )
    return content
