"""Bundles are written as a whole, and read back before they replace an older one."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import softsearch
from softsearch.errors import BundleError, printable
from softsearch.files import MANIFEST, new_contents, new_folder
from softsearch.runtime.bundle import MANIFEST_HASH, Bundle, hash_line
from softsearch.runtime.manifest import DATA_SUFFIX, FORMAT_VERSION, SPECIAL_IDS, Manifest
from softsearch.text.plain_values import read_json


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
        for name, content in {**files, MANIFEST: text, MANIFEST_HASH: hash_line(text)}.items():
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
