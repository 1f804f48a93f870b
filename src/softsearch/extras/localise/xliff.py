"""XLIFF through lxml, which keeps elements inside of text; translate-toolkit reads them away."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, unescape

from softsearch.errors import ConfigError, CorpusError, parsing
from softsearch.extras.localise.catalog import Catalog, Entry, Limit, State
from softsearch.process import how_to_install

_ROOT = re.compile(rb"<(?:[\w.-]+:)?xliff(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*>")
_SIZES = "{urn:oasis:names:tc:xliff:sizerestriction:2.0}"
_RESTRICTIONS = {"size": ("generalProfile", "xliff:codepoints"), "storage": ("storageProfile", "")}
_PROFILES = {"xliff:codepoints": "", "xliff:utf8": "utf-8", "xliff:utf16": "utf-16-le", "xliff:utf32": "utf-32-le"}
_ELEMENT = re.compile(r"</?(?:g|x|bx|ex|bpt|ept|ph|it|mrk|sub|pc|sc|ec|cp|sm|em)\b[^<>]*>")
_ROOT_END = re.compile(rb"</(?:[\w.-]+:)?xliff\s*>")


class Xliff(Catalog):
    """XLIFF 1.2 and 2.x; a text with elements inside is its XML, as a message with tags."""

    def __init__(self, data: bytes, path: Path) -> None:
        super().__init__(data)
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
        decided = next((own for each in (unit, *unit.iterancestors()) if (own := each.get("translate"))), "yes")
        if decided == "no" or not source.strip():
            state = "left out"
        return Entry((source,), (target,), unit.get("id", ""), state, unit, limit=self._limit(unit))

    def _limit(self, unit: Any) -> Limit | None:
        """The limit that the message or what it is in has: by the core of 1.2, or the module of 2.x."""
        for element in (unit, *unit.iterancestors()):
            if width := element.get("maxwidth"):
                encodings = {"char": "", "byte": self._encoding}
                size_unit = element.get("size-unit", "pixel")
                return Limit(int(width), encodings[size_unit]) if size_unit in encodings else None
            for kind, (profile, default) in _RESTRICTIONS.items():
                if restriction := element.get(f"{_SIZES}{kind}Restriction"):
                    profiles = next(self._root.iter(f"{_SIZES}profiles"), None)
                    named = default if profiles is None else profiles.get(profile, default)
                    if named in _PROFILES:
                        return Limit(int(restriction.rpartition(",")[2]), _PROFILES[named])
        return None

    def plain(self, text: str) -> str:
        return unescape(_ELEMENT.sub("", text)) if _ELEMENT.search(text) else text

    def _inside(self, element: Any) -> str:
        if element is None or not len(element):
            return "" if element is None else element.text or ""
        text = self._etree.tostring(element, encoding="unicode", with_tail=False)
        declared = re.compile(r' xmlns(?::\w+)?="[^"]*"')
        return declared.sub("", text.partition(">")[2].rpartition("</")[0])

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
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
            before = unit.find(f"{self._name}seg-source")
            before = source if before is None else before
            target.tail = before.tail
            before.addnext(target)
        if self._is_2:
            unit.set("state", "initial")
        else:
            target.set("state", "needs-review-translation")
            added = self._etree.Element(f"{self._name}note", {"from": "softsearch"})
            added.text, added.tail = note, target.tail
            target.addnext(added)

    def _whole(self) -> bytes:
        whole: str = self._etree.tostring(self._root, encoding="unicode", with_tail=False)
        inside = whole[whole.index(">") + 1 :]  # lxml escapes this sign in attributes
        return self._start + inside.encode(self._encoding, "xmlcharrefreplace") + self._end
