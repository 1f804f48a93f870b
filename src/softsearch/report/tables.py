"""Printed tables as Markdown and LaTeX, for papers and pages."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from softsearch.errors import ConfigError
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
}
_NUMBER = re.compile(r"[-+\u2212]?[\d.,]+(?!\w)|$")


class Table(NamedTuple):
    """A table of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: int = 0  # number of last columns that are not folded in a terminal


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

    rules = ("---:" if right else "---" for right in _right(table))
    rows = "".join(line(map(_in_markdown, row)) for row in (table.columns, *table.rows))
    head, _, body = rows.partition("\n")
    title = f"{_in_markdown(table.title)}\n\n" if table.title else ""
    return f"{title}{head}\n{line(rules)}{body}"


def latex(table: Table) -> str:
    """Returns a table as LaTeX without packages, with its title as the caption."""
    head, *rows = (_latex_row(row) for row in (table.columns, *table.rows))
    lines = [r"\begin{table}", r"\centering"]
    lines += [f"\\caption{{{_in_latex(table.title)}}}"] if table.title else []
    lines += [f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in _right(table))}}}", r"\hline", head]
    lines += [r"\hline", *rows, r"\hline", r"\end{tabular}", r"\end{table}"]
    return "".join(f"{each}\n" for each in lines)


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_in_latex, cells))
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
