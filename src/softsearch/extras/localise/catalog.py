"""What an opened catalog is, whatever its format: messages, and a way to fill in translations."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from locale import normalize
from pathlib import Path
from typing import Any, Literal, NamedTuple

from softsearch.errors import ConfigError
from softsearch.extras.localise.kept_lines import merged
from softsearch.text.parts import spans_of

State = Literal["translated", "untranslated", "fuzzy", "left out"]


class Limit(NamedTuple):
    """The most that a translation may have, as its format says.

    Args:
        most: the number.
        encoding: what it counts bytes of; "" if it counts characters.
    """

    most: int
    encoding: str = ""

    def problem(self, text: str) -> str | None:
        """Says that a text is longer; None if it is not."""
        size = len(text.encode(self.encoding)) if self.encoding else len(text)
        unit = f"bytes in {self.encoding}" if self.encoding else "characters"
        return f"it has {size} {unit}, the format allows {self.most}" if size > self.most else None


@dataclass(frozen=True)
class Entry:
    """A message of a catalog.

    Args:
        sources: its text; with a plural, the singular and the plural.
        targets: its translations, one for each plural form of the language; "" where there is none.
        place: the part of the program that it is in, such as a dialog: equal for messages that are seen together.
        state: ``fuzzy`` if a person must look at it; ``left out`` for obsolete and untranslatable ones.
        unit: the library's object.
        singular: which form is that of one, if there are several.
        one_has_number: whether that form is for other numbers, too, so that it must name them.
        limit: of the length of a translation.
        may_number: whether its placeholders may get numbers (``%2$s`` for ``%s``) where a translation has them in
            another order.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    place: str
    state: State
    unit: Any
    singular: int = 0
    one_has_number: bool = False
    limit: Limit | None = None
    may_number: bool = False

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yields texts with their translations: the singular with the form of one, the plural with the last."""
        if len(self.sources) == 1 or len(self.targets) > 1:
            yield self.sources[0], self.targets[self.singular if len(self.targets) > 1 else 0]
        if len(self.sources) > 1:
            others = [text for form, text in enumerate(self.targets) if text and form != self.singular]
            yield self.sources[1], (others or self.targets)[-1]

    def needed(self) -> list[int]:
        """Returns for each translation which source it is of: the form of one has the singular, if there are others.

        A singular without the number, such as ``one file``, is left out where the form is also for 21.
        """
        if len(self.sources) == 1:
            return [0] * len(self.targets)
        singular = self.singular
        if len(self.targets) == 1 or (self.one_has_number and len({len(spans_of(text)) for text in self.sources}) > 1):
            singular = -1
        return [int(form != singular) for form in range(len(self.targets))]


class Catalog(ABC):
    """An opened catalog: its messages, and a way to fill in translations that leaves all others as they are."""

    src_lang: str = ""
    tgt_lang: str = ""
    marker: str = ""  # of accelerators, if the file names it
    entries: Sequence[Entry]

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._before: bytes | None = None  # what is written of it before a change
        self.to_review: list[tuple[str, ...]] = []  # key, source, translation and note, in formats without a mark

    def pairs(self) -> list[tuple[str, str]]:
        """Returns the translated texts with their translations."""
        states = "translated", "untranslated"  # of a plural some forms may be there
        return [pair for entry in self.entries if entry.state in states for pair in entry.pairs() if pair[1]]

    def language(self, path: Path, codes: Sequence[str], advice: str, *, unnamed: str | None = None) -> str:
        """Returns which of a model's target languages the catalog's is, whatever its region and script.

        A catalog that names no language is of the only one, or of ``unnamed``, that of ``--tgt`` if the command has it.

        Raises:
            ConfigError: it is none of them; or it is not named, and there are several.
        """
        if not self.tgt_lang:
            self.tgt_lang = codes[0] if len(codes) == 1 else unnamed or ""
        found = nearest_code(self.tgt_lang, codes) if self.tgt_lang else ""
        if not found:
            expected = " or ".join(map(repr, codes))
            if not self.tgt_lang:
                option = "" if unnamed is None else ", or give --tgt"
                raise ConfigError(f"{path} names no language, expected {expected}; write it into the file{option}")
            raise ConfigError(f"{path} is a catalog of {self.tgt_lang!r}, expected {expected}; {advice}")
        return found

    def fill(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        """Writes translations into a message, marked as its format marks what a person must look at, with a note."""
        if self._before is None:
            self._before = self._whole()
        self._put(entry, targets, note)

    def __bytes__(self) -> bytes:
        """Returns the whole file; all lines are as before, except those that were filled."""
        return self._data if self._before is None else merged(self._data, self._before, self._whole())

    def review(self) -> str:
        """Returns the lines (TSV) that list what was filled in, for a format without a mark; else nothing."""
        rows = ("\t".join(" ".join(cell.split()) for cell in row) for row in self.to_review)
        return "".join(f"{row}\n" for row in rows)

    def check_source(self, path: Path, codes: Sequence[str]) -> None:
        """Refuses a catalog whose text is in none of a model's source languages.

        Raises:
            ConfigError: it is in another one.
        """
        if self.src_lang and all(codes) and not nearest_code(self.src_lang, codes):
            expected = " or ".join(map(repr, codes))
            raise ConfigError(f"{path} has text in {self.src_lang!r}, expected {expected}; choose another bundle")

    def check_messages(self, path: Path) -> None:  # noqa: B027  # most formats have none
        """Refuses messages that can be read, but not filled, because the format's own programs refuse the file.

        Raises:
            CorpusError: there is one.
        """

    def plain(self, text: str) -> str:
        """Returns a translation as a program shows it, without the format's own elements."""
        return text

    @abstractmethod
    def _put(self, entry: Entry, targets: Sequence[str], note: str) -> None:
        """Writes translations into a message."""

    @abstractmethod
    def _whole(self) -> bytes:
        """Returns what the format's library writes."""


def language_of(code: str) -> str:
    """Returns the language of a code such as ``de_DE``, ``DE-DE`` or ``zh-Hant``."""
    return re.split("[-_]", code)[0].lower()


def with_region(code: str) -> str:
    """Returns a code with the region that its language usually has: ``de_DE`` for ``de``, so that both are the same."""
    return normalize(code.replace("-", "_")).partition(".")[0]


def nearest_code(code: str, codes: Iterable[str]) -> str:
    """Returns which of a model's codes a catalog's means: with the same region, or the same language; "" if none."""
    same = [each for each in codes if language_of(each) == language_of(code)]
    return next((each for each in same if with_region(each) == with_region(code)), same[0] if same else "")
