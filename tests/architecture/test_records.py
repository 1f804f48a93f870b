"""Figures of docs/results.md that have a record in benchmarks/records are those of the record."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "benchmarks" / "records" / "localisation").glob("*/results-*.md"))
NUMBER = re.compile(r"^\**([\d.,]+)\**(?: ?%)?$")


def rows(text: str) -> list[tuple[str, ...]]:
    """The numbers of each row of the tables."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        numbers = tuple(match[1] for cell in cells if (match := NUMBER.match(cell)))
        found += [numbers] if len(numbers) > 1 else []
    return found


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.parent.name)
def test_results_are_those_of_the_record(record: Path) -> None:
    _, _, section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").partition("\n## Message catalogs\n")
    measured = rows(record.read_text(encoding="utf-8"))
    assert len(measured) >= 7
    assert set(measured) <= set(rows(section))
