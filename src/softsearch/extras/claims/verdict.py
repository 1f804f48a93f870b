"""Verdicts: compares cells of measured tables, and tests whether a difference is significant.

A cell is written ``TABLE.COLUMN[KEY=VALUE,KEY=VALUE]``: the values of a column in the rows with these values, one per
seed. Cells are added and subtracted seed by seed: ``a.bleu[run=x] - a.bleu[run=y]``. ``COLUMN_resampled``, where rows
have it, is the same score of resampled sentences, as text with numbers between spaces.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.app import nearest
from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Comparison
from softsearch.extras.claims.significance import (
    ENOUGH,
    SIGNIFICANCE,
    bootstrap_p,
    enough,
    permutation_p,
    smallest_effect,
    t_test_p,
)

Row = dict[str, Any]  # text and numbers
Tables = Mapping[str, Sequence[Row]]
HOLDS, FAILS, INCONCLUSIVE, UNDECIDED = "holds", "does not hold", "inconclusive", "undecided"
BY_CONSTRUCTION = "by construction"  # arithmetic: no evidence
MIN_SENTENCES = 60
RESAMPLED = "_resampled"
_ALL_THE_SAME = "all resamples of its sentences have the same score"
CELL = re.compile(r"(\w+)\.(\w+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison."""

    says: str
    left: float | None  # mean over the seeds; None: not measured
    right: float | None
    p: float | None  # two-sided p-value of the difference
    of: str  # what p is of: between what chance makes differences
    margin: float  # the smallest difference that matters
    detectable: float | None  # smallest difference that the test of these seeds would find with a power of 0.8
    outcome: str
    why: str = ""  # why it is undecided


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a cell, sums and differences of cells, or a number."""

    values: Mapping[Any, float]  # by seed; by None for a number
    rows: Sequence[Row] = ()
    resampled: NDArray[np.float64] | None = None  # [seeds, resamples]
    is_number: bool = False

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return mean(self.values.values())

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of resampled sentences, ``[seeds, resamples]``; a number is the same for all."""
        return np.array([[self.mean]]) if self.resampled is None else self.resampled

    def plus(self, other: "Side", factor: int) -> "Side":
        """Adds another side ``factor`` times, seed by seed."""
        values = {seed: value + factor * other.values[seed] for seed, value in self.values.items()}
        whole = self.resampled is not None and other.resampled is not None
        return Side(values, [*self.rows, *other.rows], self.scores + factor * other.scores if whole else None)


def judge(
    comparison: Comparison, tables: Tables, margins: Mapping[str, float] | None = None, *, older: bool = False
) -> Verdict:
    """Compares two cells.

    Args:
        comparison: what is compared.
        tables: rows by measure.
        margins: by column, for comparisons without their own.
        older: the tables are of an older program, and may lack cells.

    Raises:
        ConfigError: a cell is not in any table.
    """
    margin = margin_of(comparison, margins or {})
    try:
        left, right = read_side(comparison.left, tables), read_side(comparison.right, tables)
    except ConfigError:
        if not older:
            raise
        why = "these results are of an older program, which did not measure it"
        return Verdict(comparison.says, None, None, None, "", margin, None, UNDECIDED, why)
    sides = [side for side in (left, right) if not side.is_number]
    difference = left.mean - right.mean
    chances = {"seeds": _of_seeds, "sentences": _of_sentences, "members": _of_members, "construction": _of_nothing}
    p, of, why = chances[comparison.chance](left, right, difference)
    if comparison.chance == "construction":
        outcome = BY_CONSTRUCTION if difference >= 0 else FAILS
    elif why:
        outcome = UNDECIDED
    elif p is None or p > SIGNIFICANCE or abs(difference) < margin:
        outcome = INCONCLUSIVE
    else:
        outcome = HOLDS if difference > 0 else FAILS
    detects = comparison.chance == "seeds" and len(sides) == 2
    detectable = smallest_effect(*(list(side.values.values()) for side in sides)) if detects else None
    return Verdict(comparison.says, left.mean, right.mean, p, of, margin, detectable, outcome, why)


def margin_of(comparison: Comparison, margins: Mapping[str, float]) -> float:
    """Returns the smallest difference that matters: the comparison's own, or the largest of its columns'."""
    if comparison.margin is not None:
        return comparison.margin
    cells = [cell for cell in (comparison.left, comparison.right) if isinstance(cell, str)]
    return max(margins.get(found[2], 0.0) for cell in cells for found in CELL.finditer(cell))


Chance = tuple[float | None, str, str]  # p, what it is of, and why it is undecided


def _of_seeds(left: Side, right: Side, difference: float) -> Chance:
    """Tests a difference between seeds, and between the sentences of rows that have few of them."""
    sides = [side for side in (left, right) if not side.is_number]
    rows = [row for side in sides for row in side.rows]
    name = "seed" if any("run" in row for row in rows) else "round"
    few = [row["sentences"] for row in rows if "run" in row and "sentences" in row]
    sizes = [len(side.values) for side in sides]
    if not enough(sizes[0], sizes[1] if len(sizes) == 2 else None):
        p = permutation_p(*(list(side.values.values()) for side in sides)) if len(sides) == 2 else None
        return p, f"{name}s", _missing(min((side.values for side in sides), key=len), name)
    if few and min(few) < MIN_SENTENCES:
        return None, "", f"{min(few)} sentences are fewer than {MIN_SENTENCES}"
    if few and any(side.resampled is None for side in sides):
        return None, "", "its sentences were not resampled"
    found = {}
    if any(len(set(side.values.values())) > 1 for side in sides):
        found[f"{name}s"] = _between_seeds(left, right)
    if few:
        p = bootstrap_p(left.scores, right.scores, difference, min(few))
        if p is None:
            return None, "", _ALL_THE_SAME
        found["sentences"] = p
    if not found:
        return None, "", f"all {name}s have the same value, and the sentences were not resampled"
    return max(found.values()), " and ".join(found), ""


def _between_seeds(left: Side, right: Side) -> float:
    """Tests two sides, of which one may be a number, or the same for all seeds, like a model of counts."""
    one, other = ([*side.values.values()] for side in (left, right))
    if len(set(other)) == 1:
        return t_test_p(one, other[0])
    return t_test_p(other, one[0]) if len(set(one)) == 1 else permutation_p(one, other)


def _missing(seeds: Collection[Any], name: str) -> str:
    """Tells which seeds are missing for a decision."""
    if not all(isinstance(seed, int) for seed in seeds):
        return f"{ENOUGH} groups of {name}s are needed, and there are {len(seeds)}"
    absent = [str(number) for number in range(1, ENOUGH + 1) if number not in seeds]
    if len(absent) == 1:
        return f"{name} {absent[0]} is missing"
    return f"{name}s {', '.join(absent[:-1])} and {absent[-1]} are missing"


def _of_sentences(left: Side, right: Side, difference: float) -> Chance:
    """Takes the largest p of a paired bootstrap of each seed, all in one direction; or resamples the sentences."""
    rows = [row for side in (left, right) for row in side.rows]
    if all(side.is_number or side.resampled is not None for side in (left, right)):
        p = bootstrap_p(left.scores, right.scores, difference, rows[0]["sentences"])
        return (p, "sentences", "") if p is not None else (None, "", _ALL_THE_SAME)
    ps = [row["p"] for row in rows if row.get("p") is not None]  # systems without a difference have none
    if not ps:
        return None, "", "its sentences were not resampled"
    both = [
        [*side.values.values()] * (max(len(left.values), len(right.values)) if side.is_number else 1)
        for side in (left, right)
    ]
    signs = {np.sign(one - other) for one, other in zip(*both, strict=True)}
    return (max(ps) if len(signs) == 1 else 1.0), "sentences, the largest of the seeds", ""


def _of_members(left: Side, right: Side, difference: float) -> Chance:
    return left.rows[0]["members_p"], "permuted members", ""


def _of_nothing(left: Side, right: Side, difference: float) -> Chance:
    return None, "", ""


def overall(outcomes: Sequence[str]) -> str:
    """Returns the outcome of a claim from those of its comparisons, except facts of arithmetic, which say nothing."""
    outcomes = [each for each in outcomes if each != BY_CONSTRUCTION]
    counts = {each: outcomes.count(each) for each in (HOLDS, FAILS, INCONCLUSIVE, UNDECIDED)}
    held, failed = counts[HOLDS], counts[FAILS]
    if len(outcomes) in counts.values():
        return f"all {BY_CONSTRUCTION}" if not outcomes else max(counts, key=lambda each: counts[each])
    if 2 * (held + failed) < len(outcomes):
        word = UNDECIDED if counts[UNDECIDED] >= counts[INCONCLUSIVE] else INCONCLUSIVE
    else:
        word = FAILS if held <= failed else "holds in part"
    plural = {HOLDS: "hold", FAILS: "do not hold"}
    listed = ", ".join(f"{n} {each if n == 1 else plural.get(each, each)}" for each, n in counts.items() if n)
    return f"{word} (of {len(outcomes)}: {listed})"


def values(expression: str | float, tables: Tables) -> list[float]:
    """Returns the values of a cell, or of sums and differences of cells, one per seed; or a number itself.

    Raises:
        ConfigError: there is no such table, column or row.
    """
    return list(read_side(expression, tables).values.values())


def read_side(expression: str | float, tables: Tables) -> Side:
    """Reads one side of a comparison.

    Raises:
        ConfigError: there is no such table, column or row.
    """
    if not isinstance(expression, str):
        return Side({None: float(expression)}, is_number=True)
    first, *rest = re.split(r" ([+-]) ", expression)
    total = _cell(first, tables)
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        other = _cell(term, tables)
        if total.values.keys() != other.values.keys():
            raise ConfigError(f"{expression!r} adds cells of different seeds; compare tables of the same runs")
        total = total.plus(other, 1 if sign == "+" else -1)
    return total


def _cell(text: str, tables: Tables) -> Side:
    """Returns a cell, with its values by seed."""
    rows, column = rows_of(text, tables)
    rows = [row for row in rows if row.get(column) is not None]
    found = {row.get("seed"): row[column] for row in rows}
    if not found or len(found) != len(rows):
        raise ConfigError(f"{text!r} is in {len(rows)} rows, expected one per seed; change the condition")
    resampled = [row[column + RESAMPLED].split() for row in rows if column + RESAMPLED in row]
    return Side(found, rows, np.array(resampled, dtype=np.float64) if len(resampled) == len(rows) else None)


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
