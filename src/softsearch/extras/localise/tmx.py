"""TMX, to read: translation memories as OmegaT, Trados and others write them, in versions 1.1 to 1.4."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.extras.localise.catalog import Catalog, Entry, language_of
from softsearch.process import how_to_install

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"  # in version 1.1 it is lang


class Tmx(Catalog):
    """Pairs of a memory; tags inside of segments (``<bpt>``, ``<ph>``) are the text that they hold.

    Of several target languages the most frequent one is read.
    """

    def __init__(self, data: bytes, path: Path) -> None:
        super().__init__(data)
        try:
            from lxml import etree
        except ImportError as error:
            raise ConfigError(f"{path} needs lxml: {how_to_install('localise')}") from error
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
        header = root.find("{*}header")
        declared = "" if header is None else header.get("srclang", "")
        units = [self._segments(unit, declared) for unit in root.iter("{*}tu")]
        counts = Counter(code for _, _, targets in units for code in targets)
        self.tgt_lang = counts.most_common(1)[0][0] if counts else ""
        self.src_lang = next((code for code, _, _ in units if code), "")
        self.entries = [self._entry(source, targets) for _, source, targets in units]

    def _segments(self, unit: Any, declared: str) -> tuple[str, str, dict[str, str]]:
        """The language and text of a unit's source, which is the first where none is declared, and its translations."""
        texts: dict[str, str] = {}
        for variant in unit.iter("{*}tuv"):
            segment = variant.find("{*}seg")
            text = "" if segment is None else "".join(segment.itertext())
            texts.setdefault(_usual(variant.get(_LANG) or variant.get("lang") or ""), text)
        wanted = _usual(unit.get("srclang") or declared)
        same = [code for code in texts if language_of(code) == language_of(wanted)]
        source = wanted if wanted in texts else next(iter([*same, *texts]), "")
        return source, texts.pop(source, ""), texts

    def _entry(self, source: str, targets: dict[str, str]) -> Entry:
        target = targets.get(self.tgt_lang, "")
        return Entry((source,), (target,), "", "translated" if source.strip() and target.strip() else "left out", None)

    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        raise NotImplementedError("memories are only read")

    def _whole(self) -> bytes:
        raise NotImplementedError("memories are only read")


def _usual(code: str) -> str:
    """A code as others write it: ``en-US`` for ``EN-US``."""
    language, separator, region = code.partition("-")
    return language.lower() + separator + region
