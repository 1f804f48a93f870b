"""Verdicts: cells of measured tables compared, with chance ruled out.

A cell is written ``TABLE.COLUMN[KEY=VALUE,KEY=VALUE]``, the values of a column in the rows that have these values; with
several seeds it has one value for each. Cells are added and subtracted seed by seed: ``a.bleu[run=x] - a.bleu[run=y]``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from softsearch.app.config.validation import nearest
from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Comparison

Row = dict[str, Any]  # text and numbers
Tables = Mapping[str, Sequence[Row]]
HOLDS, FAILS, CLOSE = "holds", "does not hold", "inconclusive"
SIGNIFICANCE = 0.05
_CELL = re.compile(r"(\w+)\.(\w+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison."""

    says: str
    left: float  # means over the seeds
    right: float
    p: float | None  # that chance alone makes such a difference
    outcome: str


def judge(comparison: Comparison, tables: Tables) -> Verdict:
    """Compares two cells.

    Raises:
        ConfigError: a cell is in no table.
    """
    left, right = values(comparison.left, tables), values(comparison.right, tables)
    number = not (isinstance(comparison.left, str) and isinstance(comparison.right, str))
    shifted = [value - comparison.margin for value in left]
    if comparison.chance == "p":
        cells = [cell for cell in (comparison.left, comparison.right) if isinstance(cell, str)]
        found = [row["p"] for cell in cells for row in _rows(cell, tables)[0] if row.get("p") is not None]
        p = max(found, default=None)  # none of systems without a difference
        outcome = CLOSE if p is None else _outcome(float(np.mean(shifted) - np.mean(right)), p)
    elif comparison.chance == "seeds" and not number:
        p = permutation_p(shifted, right)
        outcome = _outcome(float(np.mean(shifted) - np.mean(right)), p)
    else:
        p = None
        outcome = HOLDS if min(shifted) > max(right) else FAILS if max(shifted) <= min(right) else CLOSE
    return Verdict(comparison.says, float(np.mean(left)), float(np.mean(right)), p, outcome)


def overall(outcomes: Sequence[str]) -> str:
    """The outcome of a claim from those of its comparisons."""
    if len(set(outcomes)) == 1:
        return outcomes[0]
    held = outcomes.count(HOLDS)
    return f"holds in part ({held} of {len(outcomes)})" if held else FAILS


def permutation_p(left: Sequence[float], right: Sequence[float]) -> float:
    """The exact one-sided p-value of the difference of two means, in its own direction.

    It is the share of all ways to divide the values into groups of these sizes whose difference is as large (Fisher
    1935). Three seeds a side have 20 ways, so that 0.05 asks for all values of one above all of the other.
    """
    pooled = np.array([*left, *right])
    observed = abs(np.mean(left) - np.mean(right)) - 1e-12
    sign = 1 if np.mean(left) >= np.mean(right) else -1
    greater, ways = 0, 0
    for chosen in combinations(range(len(pooled)), len(left)):
        mask = np.zeros(len(pooled), dtype=bool)
        mask[list(chosen)] = True
        greater += bool(sign * (pooled[mask].mean() - pooled[~mask].mean()) >= observed)
        ways += 1
    return greater / ways


def values(expression: str | float, tables: Tables) -> list[float]:
    """The values of a cell, or of a sum and difference of cells, one for each seed; or a number itself.

    Raises:
        ConfigError: there is no such table, column or row.
    """
    if not isinstance(expression, str):
        return [float(expression)]
    first, *rest = re.split(r" ([+-]) ", expression)
    total = _cell(first, tables)
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        other = _cell(term, tables)
        if total.keys() != other.keys():
            raise ConfigError(f"{expression!r} adds cells of different seeds; compare tables of the same runs")
        total = {seed: total[seed] + (1 if sign == "+" else -1) * other[seed] for seed in total}
    return list(total.values())


def _outcome(difference: float, p: float) -> str:
    if p > SIGNIFICANCE:
        return CLOSE
    return HOLDS if difference > 0 else FAILS


def _cell(text: str, tables: Tables) -> dict[Any, float]:
    """The values of a cell by seed."""
    rows, column = _rows(text, tables)
    rows = [row for row in rows if row.get(column) is not None]
    found = {row.get("seed"): row[column] for row in rows}
    if not found or len(found) != len(rows):
        raise ConfigError(f"{text!r} is in {len(rows)} rows, expected one for each seed; change the condition")
    return found


def _rows(text: str, tables: Tables) -> tuple[list[Row], str]:
    """The rows of a cell, and its column."""
    match = _CELL.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is not a cell, expected TABLE.COLUMN[KEY=VALUE,...]; change it")
    table, column, conditions = match.groups()
    if table not in tables:
        raise ConfigError(f"{text!r}: there is no measure {table!r}; {nearest(table, tables)}")
    wanted = dict(pair.split("=", 1) for pair in (conditions or "").split(",") if pair)
    columns = {key for row in tables[table] for key in row}
    for key in (column, *wanted):
        if key not in columns:
            raise ConfigError(f"{text!r}: the table has no column {key!r}; {nearest(key, columns)}")
    return [row for row in tables[table] if all(str(row.get(key)) == value for key, value in wanted.items())], column
