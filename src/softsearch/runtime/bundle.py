"""Bundles on disk: a folder that is complete and unaltered, or is not opened at all; and shortlists.

ONNX Runtime and SentencePiece load a file with a flipped bit silently, so every byte is checked against the manifest
before a parser sees it, and parsers get exactly the bytes that were checked. The manifest's own hash is in
``manifest.sha256``, in the format of ``sha256sum``: that one line identifies the whole bundle.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import softsearch
from softsearch.errors import BundleError, ConfigError, printable
from softsearch.files import MANIFEST, new_contents, new_folder
from softsearch.runtime.manifest import DATA_SUFFIX, FORMAT_VERSION, SPECIAL_IDS, FileEntry, Manifest
from softsearch.text.plain_values import read_json

if TYPE_CHECKING:
    from softsearch.search.shortlist import Shortlist

MANIFEST_HASH = "manifest.sha256"
FREQUENT, TRANSLATIONS = "frequent.int32", "translations.int32"  # shortlist files: little-endian ids without a header
_IDS = "<i4"
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
    manifest: Manifest
    files: dict[str, bytes]
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
    expected, actual = _read(folder, MANIFEST_HASH, limit=len(_hash_line(b""))), _hash_line(content)
    if actual != expected:
        raise BundleError(
            f"{MANIFEST} has sha256 {actual[:64].decode()}, but {MANIFEST_HASH} holds {expected[:64]!r}: it was "
            "altered or damaged; copy or export the bundle again"
        )
    return content


def _hash_line(manifest: bytes) -> bytes:
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


def bundle_of(path: Path | str, files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> Bundle:
    """Makes, in memory, the bundle that ``write_bundle`` would write.

    Raises:
        BundleError: the manifest lacks something.
    """
    text = _manifest_text(files, manifest)
    return Bundle(Path(path), Manifest.parse(text), dict(files), hashlib.sha256(text).hexdigest())


def write_bundle(path: Path | str, files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> Bundle:
    """Writes a bundle folder atomically: on any failure an older folder stays as it was.

    The new folder is complete and checked before it replaces the old one, see
    ``new_folder``.

    Args:
        path: the folder; an older bundle there is replaced.
        files: every file's contents by name, except the manifest.
        manifest: its keys except ``format_version``, ``softsearch_version``, ``special_ids`` and ``files``, which are
            filled in here.

    Returns:
        The bundle as it was read back from the disk and verified.

    Raises:
        BundleError: the manifest lacks something, the disk is full or not writable, or the folder holds something that
            is not a bundle.
    """
    folder = Path(path)
    text = _manifest_text(files, manifest)
    Manifest.parse(text)
    check_replaceable(folder, "bundle", _listed(folder / MANIFEST))
    with writing(folder, "bundle"), new_folder(folder) as fresh:
        for name, content in {**files, MANIFEST: text, MANIFEST_HASH: _hash_line(text)}.items():
            (fresh / name).write_bytes(content)
        written = Bundle.open(fresh)
    return replace(written, path=folder)


def check_writable(path: Path | str) -> None:
    """Refuses an unusable path for a bundle before one is made.

    Raises:
        BundleError: the path holds something else, or cannot be written.
    """
    folder = Path(path)
    check_replaceable(folder, "bundle", _listed(folder / MANIFEST))
    with writing(folder, "bundle"), new_contents(folder.parent, folder.name):
        pass


@contextmanager
def writing(folder: Path, kind: str) -> Iterator[None]:
    """Turns operating-system errors while a folder is written into errors that name it.

    Args:
        folder: the path.
        kind: the kind of folder, such as ``bundle``.

    Raises:
        BundleError: the disk is full or not writable.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        if isinstance(error, shutil.Error):  # raised by copies; names each file
            reason = error.args[0][0][2]
        raise BundleError(
            f"{folder} cannot be written ({reason}); an older {kind} is unchanged, free space or choose another folder"
        ) from error


def _manifest_text(files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> bytes:
    whole = {
        "format_version": FORMAT_VERSION if any(name.endswith(DATA_SUFFIX) for name in files) else 1,
        "softsearch_version": softsearch.__version__,
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in sorted(files.items())
        },
        "special_ids": SPECIAL_IDS,
        **manifest,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _listed(manifest: Path) -> set[str]:
    """The names of the files that a manifest lists; none if it is not a bundle's manifest."""
    try:
        tree = read_json(manifest)
        return {MANIFEST, MANIFEST_HASH, *tree["files"]} if isinstance(tree["format_version"], int) else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def check_replaceable(folder: Path, kind: str, listed: Set[str]) -> None:
    """Refuses to replace a folder that is neither empty nor an older one of its kind, damaged or not.

    Args:
        folder: the path.
        kind: the kind of folder, such as ``bundle``.
        listed: the files that the older one lists.

    Raises:
        BundleError: the folder holds something else.
    """
    why = ""
    if folder.is_dir() and not folder.is_symlink():
        found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
        stranger = next((name for name in found if name not in listed), None)
        if stranger is None:
            return
        why = f" ({printable(stranger)} in it does not belong to one)"
    if folder.exists() or folder.is_symlink():
        raise BundleError(
            f"{folder} exists and is not a {kind}{why}; expected a new or an older {kind}'s folder, choose another"
        )


def shortlist_files(frequent: NDArray[np.integer], translations: NDArray[np.integer]) -> dict[str, bytes]:
    """The files of a shortlist, for ``write_bundle``.

    Args:
        frequent: target ids, the most frequent first.
        translations: likely target ids of each source id, ``[src_vocab, K']``, padded with -1.
    """
    tables = {FREQUENT: frequent, TRANSLATIONS: translations}
    return {name: np.ascontiguousarray(table, dtype=_IDS).tobytes() for name, table in tables.items()}


def has_shortlist(bundle: Bundle) -> bool:
    """Tells whether a bundle holds a shortlist."""
    return {FREQUENT, TRANSLATIONS} <= bundle.files.keys()


def open_shortlist(bundle: Bundle, frequent: int) -> "Shortlist":
    """The shortlist of a bundle with its ``frequent`` most frequent target words.

    Raises:
        ConfigError: the bundle has no shortlist.
        BundleError: its files do not fit the vocabularies.
    """
    if not has_shortlist(bundle):
        raise ConfigError(
            f"bundle {bundle.path} has no shortlist; export it with shortlist=10, or leave the option out"
        )
    words = _ids(bundle, FREQUENT, least=0)
    translations = _ids(bundle, TRANSLATIONS, least=-1)
    src_vocab = bundle.manifest.src_vocab_size
    if translations.size % src_vocab:
        raise BundleError(
            f"bundle {bundle.path}: {TRANSLATIONS} has {translations.size} entries, expected a multiple of the "
            f"{src_vocab} source words; export the bundle again"
        )
    from softsearch.search.shortlist import Shortlist  # few bundles have one

    return Shortlist(words[:frequent], translations.reshape(src_vocab, -1))


def _ids(bundle: Bundle, name: str, *, least: int) -> NDArray[np.int32]:
    content, most = bundle.files[name], bundle.manifest.tgt_vocab_size - 1
    ids = np.frombuffer(content[: len(content) // 4 * 4], dtype=_IDS)
    if len(content) % 4 or not ids.size or ids.min() < least or ids.max() > most:
        raise BundleError(
            f"bundle {bundle.path}: {name} holds something other than 32-bit ids from {least} to {most}; "
            "export the bundle again"
        )
    return ids
