"""What a human should review in the output of a stream, counted line by line."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from softsearch.runtime.input_blocks import BlankLines
from softsearch.runtime.translation import Translation

_SHOWN = 5  # unknown words and terms to list
_COSTLY = 10.0  # nats by which required terms make a translation much less probable


@dataclass
class ReviewWarnings:
    """Output lines that need a human review."""

    lines: int = 0  # written
    truncated: int = 0  # reached the length limit before the model ended them
    unproven: int = 0  # not proven to be the best by exact search
    fewer_sentences: int = 0  # fewer than in the input line
    first: int = 0  # number of the first of these
    unknown: Counter[str] = field(default_factory=Counter)  # what the vocabulary lacks, with its frequency in the input
    unknown_lines: int = 0  # lines with any of it
    first_unknown: int = 0  # number of the first of these
    missing_terms: Counter[str] = field(default_factory=Counter)  # glossary terms with their counts
    lacking_terms: int = 0  # lines that lack any
    first_lacking: int = 0  # number of the first of these
    costly: int = 0  # lines whose translations required terms made much less probable, or cut off
    first_costly: int = 0  # number of the first of these
    most_costly: float = 0.0  # nats
    blank: BlankLines = field(default_factory=BlankLines)
    notes: list[str] = field(default_factory=list)  # on other files than that of the translations

    def add(self, translation: Translation, number: int) -> None:
        """Counts the translation of the line with this number."""
        self.lines = number
        self.truncated += translation.truncated
        self.unproven += translation.optimal is False
        if translation.fewer_sentences:
            self.fewer_sentences += 1
            self.first = self.first or number
        if translation.unknown:
            self.unknown.update(translation.unknown)
            self.unknown_lines += 1
            self.first_unknown = self.first_unknown or number
        if translation.missing_terms:
            self.missing_terms.update(translation.missing_terms)
            self.lacking_terms += 1
            self.first_lacking = self.first_lacking or number
        if translation.term_cost > (0 if translation.truncated else _COSTLY):
            self.costly += 1
            self.first_costly = self.first_costly or number
            self.most_costly = max(self.most_costly, translation.term_cost)

    def messages(self, unit: str, *, paragraphs: bool) -> Iterator[str]:
        """Warnings with advice; ``unit`` names the units of the vocabulary."""
        if self.truncated:
            yield (
                f"{self.truncated:,} of {self.lines:,} translations {'was' if self.truncated == 1 else 'were'} cut off "
                "at the length limit; put one sentence on each line, or raise --max-length"
            )
        if self.unproven:
            yield f"{self.unproven} lines may have a better translation; raise --max-nodes"
        if self.fewer_sentences:
            yield (
                f"{self.fewer_sentences} translations have fewer sentences than their lines, the first in line "
                f"{self.first}; put one sentence on each line" + ("" if paragraphs else ", or give --paragraphs")
            )
        if self.unknown:
            total = self.unknown.total()
            yield (
                f"the model does not know {total} {unit}{'s' * (total > 1)} of the input: "
                f"{_most_common(self.unknown)}, in {self.unknown_lines} of the lines, the first in line "
                f"{self.first_unknown}; it reads <unk> there"
            )
        if self.lacking_terms:
            yield (
                f"terms of the glossary are missing in {self.lacking_terms:,} of {self.lines:,} translations, "
                f"the first in line {self.first_lacking}: {_most_common(self.missing_terms)}"
            )
        if self.costly:
            yield (
                f"required terms make {self.costly:,} of {self.lines:,} translations much less probable (by up to "
                f"{self.most_costly:.1f} nats) or cut them off, the first in line {self.first_costly}; read these, "
                "give the terms more forms (A|B), or only prefer terms (--glossary-bonus 2)"
            )
        if self.blank.count:
            yield self.blank.message(self.lines)
        yield from self.notes


def _most_common(counts: Counter[str]) -> str:
    shown = [f"{each!r:.40}" + f" ({times} times)" * (times > 1) for each, times in counts.most_common(_SHOWN)]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else "")
