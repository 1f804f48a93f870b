"""PO and Qt's TS, through translate-toolkit, which keeps other bytes."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from gettext import c2py
from pathlib import Path
from typing import Any

from softsearch.errors import CorpusError
from softsearch.extras.localise.catalog import Catalog, Entry, State, language_of
from softsearch.extras.localise.plurals import is_often, plurals_of, rule_of
from softsearch.extras.localise.toolkit import module, multistring, storage

_NUMBERED = ("c-format", "objc-format", "php-format", "perl-format")  # flags of gettext: formats that have %2$s


class Bilingual(Catalog):
    """A file with messages and their translations."""

    def __init__(self, data: bytes, path: Path, kind: str) -> None:
        super().__init__(data)
        is_po = kind.startswith("pypo")
        if is_po:
            _check_encoding(data, path)
        self._store = storage(kind).parsestring(data)
        if not is_po:
            _give_forms(self._store.document)
        self.src_lang = self._store.getsourcelanguage() or ""
        self.tgt_lang = self._store.gettargetlanguage() or ""
        header: dict[str, str] = getattr(self._store, "parseheader", dict)()
        self.marker = (header.get("X-Accelerator-Marker") or "")[:1]
        rule = re.match(r"\s*nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;]+)", header.get("Plural-Forms") or "")
        self._has_rule, self._forms, self._singular, self._one_has_number = rule is not None, 1, 0, False
        if rule:
            form_of = c2py(rule[2])
            self._forms, self._singular = max(1, int(rule[1])), form_of(1)
            self._one_has_number = is_often(form_of, self._singular)
        elif not is_po and self.tgt_lang:
            tags = module("lang.data").qt_plural_tags.get(language_of(self.tgt_lang), ("one", "other"))
            self._forms, self._singular = len(tags), tags.index("one") if "one" in tags else 0
            self._one_has_number = plurals_of(self.tgt_lang).one_has_number
        self.entries = [self._entry(unit) for unit in self._store.units if not unit.isheader()]
        self._is_po = is_po

    def check_messages(self, path: Path) -> None:
        if self._is_po:
            _check_forms(self.entries, self._forms if self._has_rule else None, self.tgt_lang, path)
            _refuse_repeated(self.entries, path)

    def _entry(self, unit: Any) -> Entry:
        sources = tuple(map(str, unit.source.strings)) if unit.hasplural() else (str(unit.source or ""),)
        target = unit.target
        targets = tuple(str(each) for each in getattr(target, "strings", [target or ""]))
        if unit.hasplural():
            targets += ("",) * (self._forms - len(targets))
        state: State = "translated" if all(targets) else "untranslated"
        if unit.isfuzzy() and any(targets):
            state = "fuzzy"
        if unit.isobsolete() or not unit.istranslatable() or not sources[0].strip() or _has_parts(unit):
            state = "left out"
        locations = unit.getlocations()
        place = locations[0].rpartition(":")[0] or locations[0] if locations else unit.getcontext() or ""
        may_number = any(map(unit.hastypecomment, _NUMBERED)) if hasattr(unit, "hastypecomment") else False
        return Entry(sources, targets, place, state, unit, self._singular, self._one_has_number, may_number=may_number)

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        entry.unit.target = multistring(targets) if entry.unit.hasplural() else targets[0]
        entry.unit.markfuzzy()
        entry.unit.addnote(note, origin="translator")

    def _whole(self) -> bytes:
        return bytes(self._store)


def _give_forms(root: Any) -> None:
    """Gives Qt's plurals without forms an empty one, without which the library cannot read them."""
    for message in root.iter("message"):
        translation = message.find("translation")
        if message.get("numerus") == "yes" and translation is not None and translation.find("numerusform") is None:
            translation.append(translation.makeelement("numerusform"))


def _check_encoding(data: bytes, path: Path) -> None:
    """Refuses a PO in another encoding than its header names, because the library would guess one.

    Raises:
        CorpusError: it is; or there is no such encoding.
    """
    named = re.search(rb"charset=([\w-]+)", data[:4096])
    charset = named[1].decode() if named else "UTF-8"
    is_16 = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    found = "-f UTF-16 -t UTF-8 FILE" if is_16 else "-f ISO-8859-1 -t UTF-8 FILE, if it is in Latin-1"
    advice = f"convert it (iconv {found}) and write charset=UTF-8 in its header"
    try:
        data.decode(charset)
    except LookupError as error:
        if charset == "CHARSET":
            advice = f"it is a template: msginit -i {path.name} -l de_DE.UTF-8 -o de.po makes a catalog of a language"
        raise CorpusError(f"{path} says charset={charset}, an unknown encoding; {advice}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        says = "as its header says" if named else "which it is without a charset in its header"
        raise CorpusError(f"{path}:{line} is not in {charset}, {says}; {advice}") from error


def _check_forms(entries: Sequence[Entry], forms: int | None, code: str, path: Path) -> None:
    """Refuses a PO with messages that have more plural forms than its header, or with a header that has none.

    Raises:
        CorpusError: it is one.
    """
    for entry in entries:
        if not entry.unit.hasplural() or entry.state == "left out":
            continue
        if forms is None:
            count, rule = rule_of(code)
            raise CorpusError(
                f"{path} has plurals, but no Plural-Forms in its header; write there (or begin with msginit): "
                f"Plural-Forms: nplurals={count}; plural={rule};"
            )
        if len(entry.targets) > forms:
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
