"""Files of terms, as people write and as spreadsheets save them.

A line is ``source<TAB>target`` or ``source<TAB>target<TAB>kind``; if the first one has no tab, commas or semicolons
separate the columns. A cell in quotes is read as in CSV. Blank lines, comments and a header line are skipped. In a file
that begins as OmegaT's do, the third column is a comment, and a term may have several lines.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from softsearch.text.corpus import read_lines

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_CODE = r"[a-z]{2,3}[-_](?:[a-z]{4}|[a-z]{2}|\d{3})"  # de-DE, deu_Latn
_HEADER = re.compile(
    rf"(?:source|src|target|tgt)(?: (?:term|text|language))?|terms?|translations?|{_CODE}|"
    "ar|bg|cs|da|de|el|en|es|fa|fi|fr|he|hi|hu|it|ja|ko|nl|pl|pt|ro|ru|sv|th|tr|uk|vi|zh|"
    "arabic|chinese|czech|danish|dutch|english|finnish|french|german|greek|hindi|hungarian|italian|japanese|korean|"
    "persian|polish|portuguese|romanian|russian|spanish|swedish|turkish|ukrainian"
)
_OMEGAT = "# Glossary in tab-separated format"  # the beginning of the file that OmegaT writes
_WORDS = ({"it", "es"}, {"he", "el"})  # codes that are translations of one another, too


def read_rows(path: Path) -> Iterator[Sequence[str]]:
    """Yields the cells of each line, none for a line to skip.

    Raises:
        CorpusError: the file cannot be read.
    """
    lines, begun = read_lines(path), list[str]()
    for line in lines:
        if not begun and line.startswith(_OMEGAT):
            yield from _of_omegat(lines)
            return
        begun.append(line)
        if not _is_skipped(line):
            break
    separator, rest = "\t", lines
    if begun and "\t" not in begun[-1]:
        begun, rest = [*begun, *lines], iter(())
        separator = _separator(begun)
    is_first = True
    for each in (begun, rest):
        for line in each:
            if _is_skipped(line):
                yield ()
                continue
            row = _cells(line, separator)
            yield () if is_first and _is_header(row) else row
            is_first = False


def _of_omegat(lines: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yields a row for each of OmegaT's lines ``source<TAB>target<TAB>comment``: a term once, with all translations."""
    rows: list[list[str]] = [[]]  # of the first line
    places: dict[str, int] = {}
    for line in lines:
        rows.append([])
        source, _, rest = line.partition("\t")
        target = rest.partition("\t")[0].strip()
        if target and not _is_skipped(line):
            row = rows[places.setdefault(source.strip().casefold(), len(rows) - 1)]
            row += [target] if row else [source, target]
    return ([row[0], "|".join(dict.fromkeys(row[1:]))] if row else () for row in rows)


def _is_skipped(line: str) -> bool:
    """Tells whether a line is blank or a comment, which a term such as ``#1`` with its translation is not."""
    return not line.strip() or (line.startswith("#") and ("\t" not in line or line[1:2] in " #"))


def _separator(lines: Iterable[str]) -> str:
    """The separator by which each line has two or three columns; a tab if none has, or both."""
    rows = [line for line in lines if not _is_skipped(line)]
    fitting = [each for each in ",;" if all(2 <= len(_cells(line, each)) <= 3 for line in rows)]
    return fitting[0] if len(fitting) == 1 else "\t"


def _cells(line: str, separator: str) -> list[str]:
    if separator == "\t":
        quoted = ((cell, _QUOTED.fullmatch(cell)) for cell in line.split("\t"))
        return [match[1].replace('""', '"') if match else cell for cell, match in quoted]
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:  # quotes that do not end, or a very long cell
        return [line]


def _is_header(row: Sequence[str]) -> bool:
    names = [cell.strip().casefold() for cell in row[:2]]
    is_named = len(set(names)) == 2 and all(map(_HEADER.fullmatch, names))
    return is_named and set(names) not in _WORDS
