"""A translation memory: the messages of catalogs that are translated already, word for word."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from softsearch.extras.localise.accelerators import markers_of, take_off
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.opening import open_catalog


class Match(NamedTuple):
    """A translation of the same text, without its accelerator, and the file that has it."""

    target: str
    origin: str


class Memory:
    """Translations by source; the first of several is taken."""

    def __init__(self) -> None:
        self._matches: dict[str, Match] = {}

    def add(self, catalog: Catalog, origin: str) -> None:
        """Adds the translated messages of a catalog."""
        pairs = catalog.pairs()
        markers = markers_of(pairs, declared=catalog.marker)
        for source, target in pairs:
            match = Match(take_off(target, markers).text, origin)
            self._matches.setdefault(take_off(source, markers).text, match)

    def find(self, source: str) -> Match | None:
        """Returns the translation of a text without its accelerator."""
        return self._matches.get(source)


def memories_of(files: Iterable[Path], codes: Sequence[str], src_lang: str = "") -> dict[str, Memory]:
    """Returns a memory of the catalogs of each target language, by its code.

    Raises:
        CorpusError: a catalog cannot be read.
        ConfigError: a catalog is of another language.
    """
    memories = {code: Memory() for code in codes}
    for path in files:
        catalog = open_catalog(path, src_lang)
        memories[catalog.language(path, codes, "leave it out of --memory")].add(catalog, path.name)
    return memories
