"""Message catalogs: PO, Qt's TS, XLIFF, and TMX to read, through translate-toolkit and lxml, which keep other bytes."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from locale import normalize
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

from softsearch.errors import ConfigError, CorpusError, parsing
from softsearch.process import how_to_install

State = Literal["translated", "untranslated", "fuzzy", "left out"]
MAX_BYTES = 256 << 20
_ROOT = re.compile(rb"<(?:[\w.-]+:)?xliff(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*>")
_ROOT_END = re.compile(rb"</(?:[\w.-]+:)?xliff\s*>")
_ADVICE = "repair it (for PO, msgfmt -c FILE names the line), or leave it out"


@dataclass(frozen=True)
class Entry:
    """A message of a catalog.

    Args:
        sources: its text; with a plural, the singular and the plural.
        targets: its translations, one for each plural form of the language; "" where there is none.
        place: the part of the program that it is in, such as a dialog: equal for messages that are seen together.
        state: ``fuzzy`` if a person must look at it; ``left out`` for obsolete and untranslatable ones.
        unit: the library's object.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    place: str
    state: State
    unit: Any

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yields texts with their translations: the singular with the first form, the plural with the last."""
        if len(self.sources) == 1 or len(self.targets) > 1:
            yield self.sources[0], self.targets[0]
        if len(self.sources) > 1:
            yield self.sources[1], self.targets[-1]

    def needed(self) -> list[int]:
        """Returns for each translation which source it is of: the first form has the singular, if there are others."""
        if len(self.sources) == 1:
            return [0] * len(self.targets)
        return [int(len(self.targets) == 1 or form > 0) for form in range(len(self.targets))]


class Catalog(ABC):
    """An opened catalog: its messages, and a way to fill in translations that leaves all others as they are."""

    src_lang: str = ""
    tgt_lang: str = ""
    marker: str = ""  # of accelerators, if the file names it
    entries: Sequence[Entry]

    def pairs(self) -> list[tuple[str, str]]:
        """Returns the translated texts with their translations."""
        return [pair for entry in self.entries if entry.state == "translated" for pair in entry.pairs()]

    def language(self, path: Path, codes: Sequence[str], advice: str) -> str:
        """Returns which of a model's target languages the catalog's is, whatever its region and script.

        Raises:
            ConfigError: it is none of them; or it is not named, and there are several.
        """
        found = nearest_code(self.tgt_lang, codes) if self.tgt_lang else codes[0] if len(codes) == 1 else ""
        if not found:
            expected = " or ".join(map(repr, codes))
            if not self.tgt_lang:
                raise ConfigError(f"{path} does not name its language, expected {expected}; write it into the file")
            raise ConfigError(f"{path} is a catalog of {self.tgt_lang!r}, expected {expected}; {advice}")
        return found

    @abstractmethod
    def fill(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        """Writes translations into a message, marked as its format marks what a person must look at, with a note."""

    @abstractmethod
    def __bytes__(self) -> bytes:
        """Returns the whole file."""


def language_of(code: str) -> str:
    """Returns the language of a code such as ``de_DE`` or ``zh-Hant``."""
    return re.split("[-_]", code)[0]


def with_region(code: str) -> str:
    """Returns a code with the region that its language usually has: ``de_DE`` for ``de``, so that both are the same."""
    return normalize(code.replace("-", "_")).partition(".")[0]


def nearest_code(code: str, codes: Iterable[str]) -> str:
    """Returns which of a model's codes a catalog's means: with the same region, or the same language; "" if none."""
    same = [each for each in codes if language_of(each) == language_of(code)]
    return next((each for each in same if with_region(each) == with_region(code)), same[0] if same else "")


class _Toolkit(Catalog):
    """A format of translate-toolkit."""

    def __init__(self, data: bytes, path: Path, storage: str) -> None:
        module, _, name = storage.partition(":")
        try:
            reader = getattr(import_module(f"translate.storage.{module}"), name)
        except ImportError as error:
            raise ConfigError(f"{path} needs translate-toolkit: {how_to_install('localise')}") from error
        if module == "pypo" and (charset := re.search(rb"charset=([\w-]+)", data[:4096])):
            data.decode(charset[1].decode())  # else another one is guessed
        self._store = reader.parsestring(data)
        self.src_lang = self._store.getsourcelanguage() or ""
        self.tgt_lang = self._store.gettargetlanguage() or ""
        header: dict[str, str] = getattr(self._store, "parseheader", dict)()
        self.marker = (header.get("X-Accelerator-Marker") or "")[:1]
        forms = re.match(r"\s*nplurals\s*=\s*(\d)", header.get("Plural-Forms") or "")
        self._forms = max(1, int(forms[1])) if forms else 1
        self.entries = [self._entry(unit) for unit in self._store.units if not unit.isheader()]
        if module == "pypo":
            _refuse_repeated(self.entries, path)

    def _entry(self, unit: Any) -> Entry:
        sources = tuple(map(str, unit.source.strings)) if unit.hasplural() else (str(unit.source or ""),)
        target = unit.target
        targets = tuple(str(each) for each in getattr(target, "strings", [target or ""]))
        if len(sources) > 1 and len(targets) < self._forms:
            targets += ("",) * (self._forms - len(targets))
        state: State = "translated" if all(targets) else "untranslated"
        if unit.isfuzzy() and any(targets):
            state = "fuzzy"
        if unit.isobsolete() or not unit.istranslatable() or not sources[0].strip():
            state = "left out"
        locations = unit.getlocations()
        place = locations[0].rpartition(":")[0] or locations[0] if locations else unit.getcontext() or ""
        return Entry(sources, targets, place, state, unit)

    def fill(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        from translate.misc.multistring import multistring

        entry.unit.target = multistring(list(targets)) if len(entry.sources) > 1 else targets[0]
        entry.unit.markfuzzy()
        entry.unit.addnote(note, origin="translator")

    def __bytes__(self) -> bytes:
        return bytes(self._store)


class _Xliff(Catalog):
    """XLIFF 1.2 and 2.x; a text with elements inside is its XML, as a message with tags."""

    def __init__(self, data: bytes, path: Path) -> None:
        try:
            from lxml import etree
        except ImportError as error:
            raise ConfigError(f"{path} needs lxml: {how_to_install('localise')}") from error
        self._etree = etree
        self._root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
        begin, ends = _ROOT.search(data), [match.end() for match in _ROOT_END.finditer(data)]
        if begin is None or not ends:
            raise CorpusError(f"{path} has no <xliff> in an encoding such as UTF-8; write it as UTF-8")
        self._start, self._end = data[: begin.end()], data[ends[-1] :]  # lxml would sort the attributes of the root
        self._encoding = self._root.getroottree().docinfo.encoding or "UTF-8"
        namespace = etree.QName(self._root).namespace
        self._name = f"{{{namespace}}}" if namespace else ""
        self._is_2 = self._root.get("version", "").startswith("2")
        file = next(self._root.iter(f"{self._name}file"), self._root)
        keys = ("srcLang", "trgLang") if self._is_2 else ("source-language", "target-language")
        self.src_lang, self.tgt_lang = ((self._root if self._is_2 else file).get(key) or "" for key in keys)
        kind = "segment" if self._is_2 else "trans-unit"
        self.entries = [self._entry(unit) for unit in self._root.iter(f"{self._name}{kind}")]

    def _entry(self, unit: Any) -> Entry:
        source, target = (self._inside(unit.find(f"{self._name}{side}")) for side in ("source", "target"))
        found = unit.find(f"{self._name}target")
        mark = unit.get("state", "") if self._is_2 else ("" if found is None else found.get("state", ""))
        state: State = "translated" if target else "untranslated"
        if target and (mark.startswith("needs") or mark in ("new", "initial")):
            state = "fuzzy"
        if unit.get("translate") == "no" or not source.strip():
            state = "left out"
        return Entry((source,), (target,), unit.get("id", ""), state, unit)

    def _inside(self, element: Any) -> str:
        if element is None or not len(element):
            return "" if element is None else element.text or ""
        text = self._etree.tostring(element, encoding="unicode", with_tail=False)
        declared = re.compile(r' xmlns(?::\w+)?="[^"]*"')
        return declared.sub("", text.partition(">")[2].rpartition("</")[0])

    def fill(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        unit, source = entry.unit, entry.unit.find(f"{self._name}source")
        namespaces = "".join(f' xmlns{f":{k}" if k else ""}="{v}"' for k, v in self._root.nsmap.items())
        text = targets[0] if len(source) else escape(targets[0])
        with parsing(f"the translation of {entry.sources[0]!r:.60}", CorpusError, "report it"):
            target = self._etree.fromstring(f"<target{namespaces}>{text}</target>")
        target.tag = f"{self._name}target"
        if (old := unit.find(f"{self._name}target")) is not None:
            target.tail = old.tail
            unit.replace(old, target)
        else:
            target.tail = source.tail
            source.addnext(target)
        if self._is_2:
            unit.set("state", "initial")
        else:
            target.set("state", "needs-review-translation")
            added = self._etree.Element(f"{self._name}note", {"from": "softsearch"})
            added.text, added.tail = note, target.tail
            target.addnext(added)

    def __bytes__(self) -> bytes:
        whole: str = self._etree.tostring(self._root, encoding="unicode", with_tail=False)
        inside = whole[whole.index(">") + 1 :]  # lxml escapes this sign in attributes
        return self._start + inside.encode(self._encoding, "xmlcharrefreplace") + self._end


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
        return _Xliff(data, path) if suffix in _XLIFF else _Toolkit(data, path, _KINDS[suffix])


def _check_name(path: Path) -> None:
    if not is_catalog(path):
        raise CorpusError(f"{path} does not have the name of a catalog; expected {', '.join((*_KINDS, *_XLIFF))}")


def _refuse_repeated(entries: Sequence[Entry], path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        key = entry.unit.getcontext(), entry.sources[0]
        if entry.state != "left out" and key in seen:
            raise CorpusError(
                f"{path} has the message {entry.sources[0]!r:.60} twice; remove one (msguniq FILE), or give them "
                "contexts"
            )
        seen.add(key)
