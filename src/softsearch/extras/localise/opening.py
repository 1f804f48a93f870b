"""Catalogs are opened by the endings of their names."""

import re
from pathlib import Path

from softsearch.errors import CorpusError, parsing
from softsearch.extras.localise.bilingual import Bilingual
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.keyed import open_keyed
from softsearch.extras.localise.siblings import Sibling, source_of
from softsearch.extras.localise.tmx import Tmx
from softsearch.extras.localise.xliff import Xliff

MAX_BYTES = 256 << 20
_ADVICE = "repair it (for PO, msgfmt -c FILE names the line), or leave it out"
_KINDS = {".po": "pypo:pofile", ".pot": "pypo:pofile", ".ts": "ts2:tsfile"}
_XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mxliff")
WRITABLE = (*_KINDS, *_XLIFF)
_BOTH = (*WRITABLE, ".tmx")  # have both languages in one file
_NEW = {".xml": b"<resources>\n</resources>\n", ".properties": b"", ".strings": b"", ".json": b"{}\n", ".arb": b"{}\n"}
KEYED = (*_NEW,)  # a file for each language; what one without texts is


def is_catalog(path: Path) -> bool:
    """Tells whether a file is a catalog: by its name, and that of a file with its source text."""
    suffix = path.suffix.lower()
    return suffix in _BOTH or (suffix in KEYED and source_of(path) is not None)


def open_catalog(path: Path, src_lang: str = "") -> Catalog:
    """Opens a catalog.

    Args:
        path: its file.
        src_lang: the language of the source's file, for formats with a file for each; by default English.

    Raises:
        CorpusError: it cannot be read, or is of another kind; the message says what to do.
    """
    if path.suffix.lower() not in KEYED:
        return read_catalog(_content(path), path)
    sibling = source_of(path, src_lang)
    if sibling is None:
        raise CorpusError(
            f"{path} has no file of its source text: expected one with {src_lang or 'en'}, or no language, in its "
            "name, such as values/strings.xml for values-de/strings.xml, or en.json for de.json"
        )
    advice = f"repair it, or the file of its source text, {sibling.path}; or leave it out"
    return _keyed(_content(path), _content(sibling.path), sibling, path, advice)


def read_keyed(data: bytes | None, source: bytes, path: Path, src_lang: str, tgt_lang: str) -> Catalog:
    """Reads the bytes of a file of texts by keys, and of that of the source text; raises as ``open_catalog``.

    Args:
        data: the file of the target language; None if there is none yet.
        source: that of the source language.
        path: the name of ``source``, which says what they are; no file is opened.
        src_lang: the source's language.
        tgt_lang: the target's language.
    """
    data = _NEW[path.suffix.lower()] if data is None else data
    advice = "repair it, or the one in the target language that was sent with it"
    return _keyed(data, source, Sibling(path, src_lang, tgt_lang), path, advice)


def _keyed(data: bytes, source: bytes, sibling: Sibling, path: Path, advice: str) -> Catalog:
    _refuse_entities(path, data)
    _refuse_entities(sibling.path, source)
    with parsing(path, CorpusError, advice):
        return open_keyed(data, source, sibling, path)


def files_of(path: Path, src_lang: str = "") -> list[Path]:
    """Returns the files that a catalog is read from."""
    sibling = source_of(path, src_lang) if path.suffix.lower() in KEYED else None
    return [path] if sibling is None else [path, sibling.path]


def _content(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        CorpusError: it cannot be read, or is too large.
    """
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise CorpusError(f"{path} has {size:,} bytes, expected at most {MAX_BYTES:,}; divide it")
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}; name files of messages") from error


def read_catalog(data: bytes, path: Path) -> Catalog:
    """Reads the bytes of a catalog with both languages; only the name of ``path`` counts, no file is opened.

    Raises:
        CorpusError: they cannot be read, or are of another kind; the message says what to do.
    """
    suffix = path.suffix.lower()
    if suffix not in _BOTH:
        known = ", ".join((*_BOTH, *KEYED))
        raise CorpusError(f"{path} does not have the name of a catalog; expected {known}")
    _refuse_entities(path, data)
    with parsing(path, CorpusError, _ADVICE):
        if suffix == ".tmx":
            return Tmx(data, path)
        return Xliff(data, path) if suffix in _XLIFF else Bilingual(data, path, _KINDS[suffix])


def _refuse_entities(path: Path, data: bytes) -> None:
    if path.suffix.lower() in (".ts", ".tmx", ".xml", *_XLIFF) and re.search(rb"<!ENTITY", data):
        raise CorpusError(f"{path} declares entities, which are not read; write their text into the file")
