"""PO and Qt's TS, through translate-toolkit, which keeps other bytes."""

import re
from collections.abc import Sequence
from gettext import c2py
from pathlib import Path
from typing import Any

from softsearch.errors import CorpusError
from softsearch.extras.localise.catalog import Catalog, Entry, State, language_of
from softsearch.extras.localise.toolkit import multistring, storage

_ZERO_FIRST = frozenset({"ar", "cy"})  # languages whose forms in Qt begin with that of zero, not with the singular


class Bilingual(Catalog):
    """A file with messages and their translations."""

    def __init__(self, data: bytes, path: Path, kind: str) -> None:
        super().__init__(data)
        is_po = kind.startswith("pypo")
        if is_po:
            _check_encoding(data, path)
        self._store = storage(kind).parsestring(data)
        self.src_lang = self._store.getsourcelanguage() or ""
        self.tgt_lang = self._store.gettargetlanguage() or ""
        header: dict[str, str] = getattr(self._store, "parseheader", dict)()
        self.marker = (header.get("X-Accelerator-Marker") or "")[:1]
        rule = re.match(r"\s*nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;]+)", header.get("Plural-Forms") or "")
        self._forms = max(1, int(rule[1])) if rule else 1
        if is_po:
            self._singular = c2py(rule[2])(1) if rule else 0
        else:
            self._singular = int(language_of(self.tgt_lang) in _ZERO_FIRST)
        self.entries = [self._entry(unit) for unit in self._store.units if not unit.isheader()]
        self._is_po = is_po

    def check_messages(self, path: Path) -> None:
        if self._is_po:
            _check_forms(self.entries, self._forms, path)
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
        if unit.isobsolete() or not unit.istranslatable() or not sources[0].strip() or _has_parts(unit):
            state = "left out"
        locations = unit.getlocations()
        place = locations[0].rpartition(":")[0] or locations[0] if locations else unit.getcontext() or ""
        return Entry(sources, targets, place, state, unit, self._singular)

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        entry.unit.target = multistring(targets) if entry.unit.hasplural() else targets[0]
        entry.unit.markfuzzy()
        entry.unit.addnote(note, origin="translator")

    def _whole(self) -> bytes:
        return bytes(self._store)


def _check_encoding(data: bytes, path: Path) -> None:
    """Refuses a PO in another encoding than its header names, because the library would guess one.

    Raises:
        CorpusError: it is; or there is no such encoding.
    """
    named = re.search(rb"charset=([\w-]+)", data[:4096])
    charset = named[1].decode() if named else "UTF-8"
    advice = "convert it (iconv -f ISO-8859-1 -t UTF-8 FILE, if it is in Latin-1) and write charset=UTF-8 in its header"
    try:
        data.decode(charset)
    except LookupError as error:
        raise CorpusError(f"{path} says charset={charset}, an unknown encoding; {advice}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        says = "as its header says" if named else "which it is without a charset in its header"
        raise CorpusError(f"{path}:{line} is not in {charset}, {says}; {advice}") from error


def _check_forms(entries: Sequence[Entry], forms: int, path: Path) -> None:
    """Refuses a PO whose messages have more plural forms than its header.

    Raises:
        CorpusError: one has.
    """
    for entry in entries:
        if len(entry.sources) > 1 and len(entry.targets) > forms and entry.state != "left out":
            raise CorpusError(
                f"{path} has {len(entry.targets)} plural forms of {entry.sources[0]!r:.60}, its header says {forms}; "
                "correct Plural-Forms, or remove the others (msgfmt -c FILE names the line)"
            )


def _has_parts(unit: Any) -> bool:
    """Tells whether a message of Qt has texts of several lengths, or bytes, which the library does not read."""
    element = getattr(unit, "xmlelement", None)
    return element is not None and next(element.iter("lengthvariant", "byte"), None) is not None


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
