"""Formats with a file for each language, with texts by keys, through translate-toolkit: Android, .properties, JSON."""

import json
import re
from abc import abstractmethod
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Sequence
from copy import deepcopy
from gettext import c2py
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, ClassVar

from softsearch.errors import CorpusError
from softsearch.extras.localise.catalog import Catalog, Entry, State
from softsearch.extras.localise.plurals import plurals_of, rule_of
from softsearch.extras.localise.siblings import Sibling
from softsearch.extras.localise.toolkit import multistring, storage

_RESOURCES = re.compile(rb"<resources\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
_APPLE = re.compile(rb'(/\*.*?\*/|//[^\n]*)|("(?:[^"\\]|\\.)*")\s*(=\s*|;[ \t]*)(?=")', re.DOTALL)  # comments, or texts
_INDENTS: tuple[int | str | None, ...] = (2, 4, "\t", 3, 1, 8, None)


class Keyed(Catalog):
    """A file of texts by keys; its entries are those of the source's file, in whose place ``sibling`` names it."""

    _may_number: ClassVar[bool] = True  # the formats of Android, Java and Apple have numbers

    def __init__(self, data: bytes, source: bytes, sibling: Sibling, path: Path, kind: str) -> None:
        super().__init__(data)
        self.src_lang, self.tgt_lang = sibling.src_lang, sibling.tgt_lang
        self._class = storage(kind)
        self._store, read = self._read(data, self.tgt_lang), self._read(source, self.src_lang)
        self._forms, self._singular, self._must = self._plural()
        self._one_has_number = plurals_of(self.tgt_lang).one_has_number
        self._own = {_key(unit): unit for unit in self._store.units}
        _refuse_unread(self._store, path)
        _refuse_unread(read, sibling.path)
        units = [unit for unit in read.units if not unit.isheader() and unit.getid() and _is_text(unit.source)]
        self.entries = [self._entry(unit) for unit in units]

    def _plural(self) -> tuple[int, int, Collection[int]]:
        """How many forms a plural has in the language, which is that of one, and which a complete message has."""
        tags, usual, _ = plurals_of(self.tgt_lang)
        must = [place for place, tag in enumerate(tags) if tag in usual]
        return len(tags), tags.index("one") if "one" in tags else 0, must

    def _empty(self, code: str) -> Any:
        """An empty file of a language, which has its plural forms by CLDR."""
        store = self._class()
        store.settargetlanguage(code.replace("-", "_"))
        store.get_plural_tags = lambda *_: [*plurals_of(code).categories]
        return store

    def _read(self, data: bytes, code: str) -> Any:
        store = self._empty(code)
        store.detect_encoding = lambda text, *_, **__: (text.decode("utf-8-sig"), "utf-8")  # else it is guessed
        store.parse(data)
        return store

    def _entry(self, unit: Any) -> Entry:
        forms = (str(each or "") for each in getattr(unit.source, "strings", [unit.source]))
        texts = [*filter(None, forms)] or [""]
        sources = (texts[0], texts[-1]) if _is_plural(unit.source) else (texts[0],)
        found = self._own.get(_key(unit))
        value = None if found is None else found.source
        targets = tuple(str(each or "") for each in getattr(value, "strings", [value]))
        must: Collection[int] = (0,)
        if len(sources) > 1:
            targets += ("",) * (self._forms - len(targets))
            must = self._must
        state: State = "translated" if all(targets[place] for place in must) else "untranslated"
        is_other = found is not None and (_is_plural(value) != (len(sources) > 1) or not _is_text(value or ""))
        if is_other or not sources[0].strip() or (state == "untranslated" and not unit.istranslatable()):
            state = "left out"
        place = unit.getid().rpartition(".")[0]
        return Entry(
            sources, targets, place, state, unit, self._singular, self._one_has_number, may_number=self._may_number
        )

    @abstractmethod
    def _place(self, unit: Any, note: str) -> Any:
        """Returns the unit to write a translation into, for one of the source."""

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        unit = self._place(entry.unit, " ".join(note.split()))
        unit.target = multistring(targets) if len(entry.sources) > 1 else targets[0]


class _Appended(Keyed):
    """New texts replace empty ones, or are after all others, each with a comment."""

    def __init__(self, data: bytes, source: bytes, sibling: Sibling, path: Path, kind: str) -> None:
        super().__init__(data, source, sibling, path, kind)
        self._new = self._empty(self.tgt_lang)

    def _place(self, unit: Any, note: str) -> Any:
        placed = self._own.get(_key(unit))
        if placed is None:
            placed = _copy(unit)
            self._new.addunit(placed)
        self._comment(placed, note)
        return placed

    @abstractmethod
    def _comment(self, unit: Any, note: str) -> None:
        """Puts a comment before a new text."""

    def __bytes__(self) -> bytes:
        before = super().__bytes__()
        return self._with_new(before) if self._new.units else before

    def _whole(self) -> bytes:
        return bytes(self._store)

    @abstractmethod
    def _with_new(self, before: bytes) -> bytes:
        """Returns the file with new units."""


class Lines(_Appended):
    """Java's .properties and Apple's .strings, in UTF-8 while they are filled."""

    def __init__(self, data: bytes, source: bytes, sibling: Sibling, path: Path, kind: str) -> None:
        self._is_java, self._encoding = kind == "properties:javafile", _encoding_of(data)
        own, other = (each.decode(_encoding_of(each)).encode() for each in (data, source))
        super().__init__(own, other, sibling, path, kind)
        is_escaped = self._is_java and data.isascii()
        self._new.encoding = self._store.encoding = "us-ascii" if is_escaped else self._encoding

    def _read(self, data: bytes, code: str) -> Any:
        if not self._is_java:  # the library reads one text a line, with its key
            data = _APPLE.sub(lambda each: each[1] or each[2] + (b" = " if each[3][:1] == b"=" else b";\n"), data)
        return super()._read(data, code)

    def __bytes__(self) -> bytes:
        return super().__bytes__().decode().encode(self._encoding)

    def _whole(self) -> bytes:
        return super()._whole().decode(self._encoding).encode()

    def _comment(self, unit: Any, note: str) -> None:
        if _key(unit) not in self._own:
            unit.comments = []  # of the source's file
        unit.addnote(f"# {note}" if self._is_java else f"/* {note} */")

    def _with_new(self, before: bytes) -> bytes:
        lines = "".join(unit.getoutput() for unit in self._new.units).encode()
        added = lines if before.endswith(b"\n") or not before else b"\n" + lines
        return before + (added.replace(b"\n", b"\r\n") if b"\r\n" in before else added)


class Android(_Appended):
    """Android's resources; new texts are after the others."""

    def __init__(self, data: bytes, source: bytes, sibling: Sibling, path: Path, kind: str) -> None:
        for content, file in ((data, path), (source, sibling.path)):
            if not _RESOURCES.search(content):
                raise CorpusError(f"{file} has no <resources> in UTF-8, as Android's files of texts have; leave it out")
        super().__init__(data, source, sibling, path, kind)

    def _comment(self, unit: Any, note: str) -> None:
        unit.addnote(f" {re.sub('--+', '-', note)} ")
        unit.xmlelement.getprevious().tail = "\n    "

    def _place(self, unit: Any, note: str) -> Any:
        if (empty := self._own.pop(_key(unit), None)) is not None:
            _remove(empty.xmlelement)  # a new one, since the file may lack the source's namespaces
        return super()._place(unit, note)

    def _with_new(self, before: bytes) -> bytes:
        found = _RESOURCES.search(before)
        assert found is not None  # it was parsed
        start = before[: found.end()].removesuffix(b">").removesuffix(b"/")
        for prefix in {*self._new.body.nsmap} - {*self._store.body.nsmap}:
            start += f' xmlns:{prefix}="{self._new.body.nsmap[prefix]}"'.encode()
        end = max(before.rfind(b"</resources"), 0)
        rest, end_tag = (before[found.end() : end], before[end:]) if end else (b"", b"</resources>\n")
        own = rest.rstrip()
        inside = bytes(self._new)
        inside = inside[_RESOURCES.search(inside).end() : inside.rindex(b"</resources")]  # type: ignore[union-attr]
        if indent := re.search(rb"\n([ \t]+)<", rest):
            inside = re.sub(rb"(?m)^((?: {4})+)(?=<)", lambda each: indent[1] * (len(each[1]) // 4), inside)
        return start + b">" + own + inside.rstrip() + (rest[len(own) :] or b"\n") + end_tag


class Json(Keyed):
    """JSON: flat or nested, of i18next, browser extensions, Flutter and FormatJS; without comments, so with a list."""

    _may_number: ClassVar[bool] = False

    def __init__(self, data: bytes, source: bytes, sibling: Sibling, path: Path, kind: str) -> None:
        super().__init__(data, source, sibling, path, kind)
        self._content = json.loads(data.decode("utf-8-sig")) if data.strip() else {}
        for indent, is_ascii in product(_INDENTS, (False, True)):
            separators = (", ", ": ") if indent is None else (",", ": ")
            self._form: dict[str, Any] = {"indent": indent, "ensure_ascii": is_ascii, "separators": separators}
            if self._written(self._content) == data:
                return
        found = re.search(rb"\n([ \t]+)", data)
        indent = found[1].decode() if found else 2
        self._form = {"indent": indent, "ensure_ascii": False, "separators": (",", ": ")}

    def _plural(self) -> tuple[int, int, Collection[int]]:
        if self._class.__name__ != "I18NextFile":
            return super()._plural()
        forms, rule = rule_of(self.tgt_lang)
        return forms, c2py(rule)(1), range(forms)

    def _place(self, unit: Any, note: str) -> Any:
        if _key(unit) not in self._own:
            self._own[_key(unit)] = _copy(unit)
            self._store.addunit(self._own[_key(unit)])
        return self._own[_key(unit)]

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        super()._put(entry, targets, note)
        self.to_review.append(
            (entry.unit.getid().removeprefix("."), " | ".join(entry.sources), " | ".join(targets), note)
        )

    def _whole(self) -> bytes:
        return self._written(_with_texts(self._content, json.loads(bytes(self._store))))

    def _written(self, content: Any) -> bytes:
        return json.dumps(content, **self._form).encode() + b"\n" * self._data.endswith(b"\n")


def _with_texts(content: Any, texts: Any) -> Any:
    """What was read, with the texts of what translate-toolkit writes, which lacks empty objects and lists."""
    match content, texts:
        case dict(), dict():
            return content | {key: _with_texts(content.get(key), each) for key, each in texts.items()}
        case list(), list():
            return [_with_texts(*both) for both in zip_longest(content, texts)]
    return texts if isinstance(texts, str) or (texts and not content) else content


def json_kind(data: bytes, path: Path) -> str:
    """Returns the class of translate-toolkit for a JSON file, by its content.

    Raises:
        CorpusError: it has a key twice.
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise CorpusError(f"{path} has the key {key!r:.60} twice; remove one")
            keys.append(key)
        return dict(pairs)

    keys: list[str] = []
    content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=once)
    values = list(content.values()) if isinstance(content, dict) else []
    if path.suffix.lower() == ".arb":
        return "jsonl10n:ARBJsonFile"
    for key, kind in (("message", "WebExtensionJsonFile"), ("defaultMessage", "FormatJSJsonFile")):
        if values and all(isinstance(value, dict) and isinstance(value.get(key), str) for value in values):
            return f"jsonl10n:{kind}"
    ends = {key.rpartition("_")[2] for key in keys if "_" in key}
    if ends & {"one", "other"}:
        return "jsonl10n:I18NextV4File"
    return "jsonl10n:I18NextFile" if ends & {"plural", "0"} else "jsonl10n:JsonNestedFile"


def open_keyed(data: bytes, source: bytes, sibling: Sibling, path: Path) -> Keyed:
    """Reads a file by the ending of its name.

    Raises:
        CorpusError: a key is in it twice.
    """
    match path.suffix.lower():
        case ".xml":
            return Android(data, source, sibling, path, "aresource:AndroidResourceFile")
        case ".properties":
            return Lines(data, source, sibling, path, "properties:javafile")
        case ".strings":
            return Lines(data, source, sibling, path, "properties:stringsutf8file")
    json_kind(data, path)
    return Json(data, source, sibling, path, json_kind(source, sibling.path))


def _remove(element: Any) -> None:
    """Removes an element of XML with its line."""
    parent, before, tail = element.getparent(), element.getprevious(), element.tail or ""
    parent.remove(element)
    if "\n" in tail and before is not None:
        before.tail = tail
    elif "\n" in tail:
        parent.text = tail


def _encoding_of(data: bytes) -> str:
    """The encoding of a file of lines: by its mark, else UTF-8 or Latin-1."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16-le" if data.startswith(BOM_UTF16_LE) else "utf-16-be"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8"


def _refuse_unread(store: Any, path: Path) -> None:
    for unit in store.units:
        if not unit.getid() and _is_text(unit.source) and unit.source:
            raise CorpusError(f"{path} has a text without a key: {unit.source!r:.60}; write it on the line of its key")
    for key, count in Counter(_key(unit) for unit in store.units if unit.getid()).items():
        if count > 1:
            raise CorpusError(f"{path} has the key {key[-1]!r:.60} twice; remove one")


def _copy(unit: Any) -> Any:
    """A copy without the file that a unit is in."""
    store, unit._store = unit._store, None
    copied, unit._store = deepcopy(unit), store
    return copied


def _key(unit: Any) -> tuple[Any, ...]:
    """The key of a unit: that of JSON's nested objects has parts, Android's is for a kind of text and of devices."""
    if hasattr(unit, "xmlelement"):
        return unit.xmlelement.tag, unit.xmlelement.get("product", "default"), unit.getid()
    return tuple(unit.get_unitid().parts) if hasattr(unit, "get_unitid") else (unit.getid(),)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_plural(value: Any) -> bool:
    return hasattr(value, "strings")
