"""Draws the figure of a claim from ``results.json``: its rows, the paper's numbers, and names."""

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from softsearch.extras.claims.claim_page import words
from softsearch.extras.claims.results import Results
from softsearch.extras.claims.table_chart import chart
from softsearch.extras.claims.verdict import CELL, Row, rows_of
from softsearch.report.parts import style

_DPI = 160


def draw_claim(results: Results, path: Path) -> None:
    """Writes a PNG."""
    with style():
        claim_chart(results).savefig(path, format="png", dpi=_DPI)


def claim_chart(results: Results) -> Figure:
    """Draws the figure; call it inside ``softsearch.report.drawing.style``."""
    figure = dict(results["figure"])
    names = figure.pop("measure")
    tables = [names] if isinstance(names, str) else names
    rows = [row | {"measure": table} for table in tables for row in results["tables"][table]]
    published = [row for row in published_rows(results) if row["measure"] in tables]
    return chart(rows, published=published, names=words(results), **figure)


def published_rows(results: Results) -> list[Row]:
    """Returns the rows for which the paper has numbers, with those instead of ours; two rows for ``38 to 39``."""
    found: dict[Any, Row] = {}
    for each in results["published"]:
        match = CELL.fullmatch(each["cell"] or "")
        if match is None:
            continue
        table, column, conditions = match.groups()
        row = rows_of(match[0], results["tables"])[0][0]
        texts = {key: value for key, value in row.items() if isinstance(value, str | int)}  # other values are measured
        for index, number in enumerate(_numbers(each["published"])):
            found.setdefault((table, conditions, index), texts | {"measure": table})[column] = number
    return list(found.values())


def _numbers(value: float | str) -> list[float]:
    """Returns a number, or both ends of a range."""
    if not isinstance(value, str):
        return [value]
    ends = re.fullmatch(r"([\d.]+) to ([\d.]+)", value)
    return [float(end) for end in ends.groups()] if ends else []
