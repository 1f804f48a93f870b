"""Word dictionaries in text files: lines of ``source<TAB>target<TAB>count``, one per source word."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from softsearch.errors import CorpusError
from softsearch.files import new_file
from softsearch.text.corpus import read_lines

Counts = Mapping[tuple[str, str], int]  # how often a source word and a target word were aligned


class Entry(NamedTuple):
    """A source word, its translation and how often the two were aligned."""

    source: str
    target: str
    times: int


def best_translations(counts: Counts) -> list[Entry]:
    """Returns each source word's most frequently aligned translation, the most frequent entries first.

    Ties go to the target word with fewer alignments in total, which is more specific.
    """
    totals: Counter[str] = Counter()
    choices: dict[str, list[Entry]] = defaultdict(list)
    for (source, target), count in counts.items():
        totals[target] += count
        choices[source].append(Entry(source, target, count))
    best = (min(entries, key=lambda e: (-e.times, totals[e.target], e.target)) for entries in choices.values())
    return sorted(best, key=lambda entry: (-entry.times, entry.source))


def write_dictionary(path: Path, entries: Iterable[Entry]) -> None:
    """Writes a dictionary atomically; creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as file:
        file.writelines(f"{entry.source}\t{entry.target}\t{entry.times}\n".encode() for entry in entries)


def read_dictionary(path: Path) -> dict[str, str]:
    """Returns the translation (one or more words) of each source word in a file.

    Raises:
        CorpusError: the file cannot be read, or a line is wrong.
    """
    translations: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        entry = _parse(line, f"{path}:{number}")
        if entry.source in translations:
            raise CorpusError(
                f"{path}:{number} repeats {entry.source!r} from line {lines[entry.source]}; expected one "
                "translation per source word, remove one of the lines"
            )
        translations[entry.source], lines[entry.source] = entry.target, number
    return translations


def _parse(line: str, where: str) -> Entry:
    fields = line.split("\t")
    if len(fields) != 3:
        raise CorpusError(
            f"{where} has {len(fields)} fields, expected 3 with tabs between them (source, target, count); fix the line"
        )
    source, target, count = fields
    if source.split() != [source]:
        raise CorpusError(f"{where} has the source {source!r}, expected one word without spaces; fix the line")
    if target.strip() != target or not target:
        raise CorpusError(f"{where} has the target {target!r}, expected words without spaces around them; fix the line")
    if not (count.isascii() and count.isdigit() and len(count) < 19 and int(count) >= 1):
        raise CorpusError(f"{where} has the count {count!r:.40}, expected a whole number of at least 1; fix the line")
    return Entry(source, target, int(count))
