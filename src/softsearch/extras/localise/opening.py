"""Catalogs are opened by the endings of their names."""

import re
from pathlib import Path

from softsearch.errors import CorpusError, parsing
from softsearch.extras.localise.bilingual import Bilingual
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.xliff import Xliff

MAX_BYTES = 256 << 20
_ADVICE = "repair it (for PO, msgfmt -c FILE names the line), or leave it out"
_KINDS = {".po": "pypo:pofile", ".pot": "pypo:pofile", ".ts": "ts2:tsfile", ".tmx": "tmx:tmxfile"}
_XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mxliff")
WRITABLE = (*(suffix for suffix in _KINDS if suffix != ".tmx"), *_XLIFF)


def is_catalog(path: Path) -> bool:
    """Tells whether a file's name is that of a catalog."""
    return path.suffix.lower() in (*_KINDS, *_XLIFF)


def open_catalog(path: Path) -> Catalog:
    """Opens a catalog.

    Raises:
        CorpusError: it cannot be read, or is of another kind; the message says what to do.
    """
    _check_name(path)
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise CorpusError(f"{path} has {size:,} bytes, expected at most {MAX_BYTES:,}; divide it")
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}; name files of messages") from error
    return read_catalog(data, path)


def read_catalog(data: bytes, path: Path) -> Catalog:
    """Reads the bytes of a catalog; only the name of ``path`` counts, no file is opened.

    Raises:
        CorpusError: they cannot be read, or are of another kind; the message says what to do.
    """
    _check_name(path)
    suffix = path.suffix.lower()
    if suffix not in (".po", ".pot") and re.search(rb"<!ENTITY", data):
        raise CorpusError(f"{path} declares entities, which are not read; write their text into the file")
    with parsing(path, CorpusError, _ADVICE):
        return Xliff(data, path) if suffix in _XLIFF else Bilingual(data, path, _KINDS[suffix])


def _check_name(path: Path) -> None:
    if not is_catalog(path):
        raise CorpusError(f"{path} does not have the name of a catalog; expected {', '.join((*_KINDS, *_XLIFF))}")
