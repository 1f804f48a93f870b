"""Printed tables as Markdown and LaTeX, for papers and pages."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import MetricFacts
from softsearch.files import new_file

_MARKDOWN = re.compile(r"[\\`*|\[\]<]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "\u2212": "$-$",
    "±": r"$\pm$",
}
_NUMBER = re.compile(r"[-+\u2212]?[\d.,]+(?!\w)|$")


class Table(NamedTuple):
    """A table of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: int = 0  # number of last columns that are not folded in a terminal
    best: frozenset[tuple[int, int]] = frozenset()  # rows and columns of cells in bold type, in files


def best_cells(
    scores: Mapping[str, Sequence[float | None]], facts: Mapping[str, MetricFacts], first_column: int, digits: int = 2
) -> frozenset[tuple[int, int]]:
    """Returns the cells with the best score of each metric, rounded to ``digits``, in a table with a row per system.

    ``scores`` are those of the systems by metric, from the column ``first_column`` on. One system has no best score.
    """
    cells = set()
    for column, (name, values) in enumerate(scores.items(), first_column):
        fact, known = facts[name], [value for value in values if value is not None]
        if len(values) > 1 and known and fact.higher_is_better is not None:
            best = fact.show(max(known) if fact.higher_is_better else min(known), digits)
            shown = ["" if value is None else fact.show(value, digits) for value in values]
            cells |= {(row, column) for row, text in enumerate(shown) if text == best}
    return frozenset(cells)


def check_table_name(path: Path | None) -> None:
    """Refuses a file name with an unknown ending, before anything is measured.

    Raises:
        ConfigError: the ending is not that of a format.
    """
    if path is not None and path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"table is {path}, expected a name that ends with {' or '.join(_FORMATS)}; change table")


def write_tables(path: Path, tables: Iterable[Table]) -> None:
    """Writes tables as Markdown or LaTeX, depending on the ending of the file name.

    Raises:
        ConfigError: the ending is not that of a format.
        OSError: the file cannot be written.
    """
    check_table_name(path)
    text = "\n".join(_FORMATS[path.suffix.lower()](table) for table in tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as file:
        file.write(text.encode())


def markdown(table: Table) -> str:
    """Returns a table as Markdown, with its title above it."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    rules = line("---:" if right else "---" for right in _right(table))
    rows = map(line, _cells(table, _in_markdown, "**{}**"))
    title = f"{_in_markdown(table.title)}\n\n" if table.title else ""
    return title + line(map(_in_markdown, table.columns)) + rules + "".join(rows)


def latex(table: Table) -> str:
    """Returns a table as LaTeX with the package booktabs, with its title as the caption."""
    rows = map(_latex_row, _cells(table, _in_latex, r"\textbf{{{}}}"))
    lines = [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering"]
    lines += [f"\\caption{{{_in_latex(table.title)}}}"] if table.title else []
    lines += [f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in _right(table))}}}", r"\toprule"]
    lines += [_latex_row(map(_in_latex, table.columns)), r"\midrule", *rows, r"\bottomrule"]
    lines += [r"\end{tabular}", r"\end{table}"]
    return "".join(f"{each}\n" for each in lines)


def _cells(table: Table, escape: Callable[[str], str], bold: str) -> Iterator[list[str]]:
    """Yields the rows, escaped, with the best cells in bold type."""
    for row, cells in enumerate(table.rows):
        yield [
            bold.format(escape(cell)) if (row, column) in table.best else escape(cell)
            for column, cell in enumerate(cells)
        ]


def _latex_row(cells: Iterable[str]) -> str:
    row = " & ".join(cells)
    guard = "{}" if row.startswith(("[", "*")) else ""  # else an argument of the line break before it
    return f"{guard}{row} \\\\"


_FORMATS = {".md": markdown, ".tex": latex}


def _right(table: Table) -> list[bool]:
    """Tells for each column whether its cells are numbers or empty."""
    return [bool(cells) and all(map(_NUMBER.match, cells)) for cells in zip(*table.rows, strict=True)]


def _in_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def _in_latex(text: str) -> str:
    text = re.sub(r"^-(?=[\d.])", "\u2212", " ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in text)
