"""A translation memory: the messages of catalogs that are translated already."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from softsearch.extras.localise.accelerators import markers_of, take_off
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.checks import problems
from softsearch.extras.localise.opening import open_catalog
from softsearch.extras.localise.similar import LEAST_TO_TRANSLATE, Texts, behind, most_similar
from softsearch.text.parts import mask_pair


class Match(NamedTuple):
    """A translation of the same text, without its accelerator, and the file that has it."""

    target: str
    origin: str


class Memory:
    """Translations by source; the first of several that passes the checks is taken.

    Args:
        first: a memory whose translations come before; catalogs that are added here do not change it.
    """

    def __init__(self, first: "Memory | None" = None) -> None:
        self._first = first
        self._matches: dict[str, dict[Match, None]] = {}
        self._new: list[tuple[str, str]] = []  # not masked yet
        self._texts, self._pairs = Texts(), list[tuple[str, str]]()  # with symbols
        self._masked: set[str] = set()

    def add(self, catalog: Catalog, origin: str) -> None:
        """Adds the translated messages of a catalog."""
        pairs = catalog.pairs()
        markers = markers_of(pairs, declared=catalog.marker)
        for pair in pairs:
            source, target = (take_off(text, markers).text for text in pair)
            self._matches.setdefault(source, {})[Match(target, origin)] = None
            self._new.append((source, target))

    def find(self, source: str) -> Match | None:
        """Returns the translation of a text without its accelerator."""
        found = self._first and self._first.find(source)
        return found or next(
            (match for match in self._matches.get(source, ()) if not problems(source, match.target)), None
        )

    def with_similar(self, sources: Sequence[str]) -> list[str]:
        """Returns texts with symbols, each behind the translation of the most similar one, if there is one."""
        found = zip(sources, self._most_similar(sources), strict=True)
        return [source if best is None else behind(source, best.target) for source, best in found]

    def mask(self) -> None:
        """Puts symbols into what was added, which takes longer than reading it."""
        masked = dict[str, str]()
        for pair in self._new:
            if texts := mask_pair(*pair):
                source, target = (" ".join(text.split()) for text in texts)
                masked.setdefault(source, target)
        self._new.clear()
        new = {source: target for source, target in masked.items() if source not in self._masked}
        self._masked |= new.keys()
        self._texts.add(new)
        self._pairs += new.items()

    def _most_similar(self, sources: Sequence[str]) -> "list[_Similar | None]":
        """The most similar text of each: of equally similar ones the shortest, and of these the first."""
        self.mask()
        own = [
            best and _Similar(best.similarity, -len(self._pairs[best.place][0]), self._pairs[best.place][1])
            for best in most_similar(sources, self._texts, least=LEAST_TO_TRANSLATE)
        ]
        if self._first is None:
            return own
        pairs = zip(self._first._most_similar(sources), own, strict=True)
        return [max(filter(None, pair), key=itemgetter(0, 1), default=None) for pair in pairs]


class _Similar(NamedTuple):
    similarity: float  # per cent
    shortness: int  # -characters
    target: str


def memories_of(
    files: Iterable[Path], codes: Sequence[str], src_lang: str = "", *, unnamed: str | None = None
) -> dict[str, Memory]:
    """Returns a memory of the catalogs of each target language, by its code; ``unnamed`` is that of those without.

    Raises:
        CorpusError: a catalog cannot be read.
        ConfigError: a catalog is of another language.
    """
    memories = {code: Memory() for code in codes}
    for path in files:
        catalog = open_catalog(path, src_lang)
        code = catalog.language(path, codes, "leave it out of --memory", unnamed=unnamed)
        catalog.check_source(path, src_lang.split("+"))
        memories[code].add(catalog, path.name)
    return memories
