"""Verdicts: compares cells of measured tables, and tests whether a difference is significant.

A cell is written ``TABLE.COLUMN[KEY=VALUE,KEY=VALUE]``: the values of a column in the rows with these values, one per
seed. Cells are added and subtracted seed by seed: ``a.bleu[run=x] - a.bleu[run=y]``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import NormalDist, mean, variance
from typing import Any

import numpy as np

from softsearch.app import nearest
from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Comparison

Row = dict[str, Any]  # text and numbers
Tables = Mapping[str, Sequence[Row]]
HOLDS, FAILS, CLOSE = "holds", "does not hold", "inconclusive"
SIGNIFICANCE = 0.05
CELL = re.compile(r"(\w+)\.(\w+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison."""

    says: str
    left: float  # mean over the seeds
    right: float
    p: float | None  # p-value of the difference
    margin: float  # the smallest difference that matters
    detectable: float | None  # smallest difference that these seeds would detect with a power of 0.8
    outcome: str


def judge(comparison: Comparison, tables: Tables, margins: Mapping[str, float] | None = None) -> Verdict:
    """Compares two cells; ``margins``, by column, are for comparisons without their own.

    Raises:
        ConfigError: a cell is not in any table.
    """
    left, right = values(comparison.left, tables), values(comparison.right, tables)
    difference, p, detectable = mean(left) - mean(right), None, None
    cells = [cell for cell in (comparison.left, comparison.right) if isinstance(cell, str)]
    margin = comparison.margin
    if margin is None:
        margin = max((margins or {}).get(found[2], 0.0) for cell in cells for found in CELL.finditer(cell))
    if comparison.chance == "interval":
        highest = values(CELL.sub(_high, cells[0]), tables)
        outcome = HOLDS if difference >= 0 else FAILS if mean(highest) < mean(right) else CLOSE
    elif comparison.chance == "p":
        ps = [row["p"] for cell in cells for row in rows_of(cell, tables)[0] if row.get("p") is not None]
        p = max(ps, default=None)  # systems without a difference have none
        outcome = CLOSE if p is None or p > SIGNIFICANCE else HOLDS if difference > 0 else FAILS
    elif comparison.chance == "seeds" and len(cells) == 2:
        p, detectable = permutation_p(left, right), smallest_effect(left, right)
        outcome = CLOSE if p > SIGNIFICANCE else HOLDS if difference > 0 else FAILS
    else:
        outcome = HOLDS if min(left) > max(right) else FAILS if max(left) <= min(right) else CLOSE
    if abs(difference) < margin:
        outcome = CLOSE
    return Verdict(comparison.says, mean(left), mean(right), p, margin, detectable, outcome)


def overall(outcomes: Sequence[str]) -> str:
    """Returns the outcome of a claim: that of most comparisons, with the number that hold if not all do."""
    held, failed = outcomes.count(HOLDS), outcomes.count(FAILS)
    if held == len(outcomes):
        return HOLDS
    word = CLOSE if 2 * (held + failed) < len(outcomes) else FAILS if held <= failed else "holds in part"
    return f"{word} ({held} of {len(outcomes)} hold)" if held else word


def smallest_effect(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Returns the difference of two means that a one-sided t-test at 0.05 detects with a power of 0.8.

    It depends on the deviation within the two sides, estimated from the same values; None for single values.
    """
    degrees = len(left) + len(right) - 2
    if min(len(left), len(right)) < 2:
        return None
    pooled = sum((len(side) - 1) * variance(side) for side in (left, right)) / degrees
    quantiles = sum(_t_quantile(share, degrees) for share in (1 - SIGNIFICANCE, 0.8))
    return quantiles * sqrt(pooled * (1 / len(left) + 1 / len(right)))


def _t_quantile(share: float, degrees: int) -> float:
    """Returns a quantile of Student's t, from the first terms of Hill's expansion around the normal (1970)."""
    z = NormalDist().inv_cdf(share)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def permutation_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns the exact one-sided p-value of the difference of two means, in its own direction.

    It is the share of all divisions of the values into groups of these sizes whose difference is as large (Fisher
    1935). Three seeds per side have 20 divisions, so 0.05 requires all values of one side above all of the other.
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
    """Returns the values of a cell, or of sums and differences of cells, one per seed; or a number itself.

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


def _high(cell: re.Match[str]) -> str:
    """Returns the cell with the upper end of a cell's interval."""
    return cell[0].replace(f".{cell[2]}", f".{cell[2]}_high", 1)


def _cell(text: str, tables: Tables) -> dict[Any, float]:
    """Returns the values of a cell by seed."""
    rows, column = rows_of(text, tables)
    rows = [row for row in rows if row.get(column) is not None]
    found = {row.get("seed"): row[column] for row in rows}
    if not found or len(found) != len(rows):
        raise ConfigError(f"{text!r} is in {len(rows)} rows, expected one per seed; change the condition")
    return found


def rows_of(text: str, tables: Tables) -> tuple[list[Row], str]:
    """Returns the rows of a cell, and its column.

    Raises:
        ConfigError: the text is not a cell, or there is no such table or column.
    """
    match = CELL.fullmatch(text.strip())
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
