"""Figures of README and docs are in the records that they link: benchmarks/, and the pages of claims.

A figure is a number with a decimal point or a comma, in a table or in a line with a measure. Records are those linked
in its line, else those of its section and of the page's beginning.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks import learning_rates
from softsearch.extras.claims.claim import read_claim

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/results.md", "docs/models.md", "docs/comparison.md")
LOCALISATION = sorted((ROOT / "benchmarks" / "records" / "localisation").glob("*/results-[0-9]*.md"))
MULTILINGUAL = sorted((ROOT / "benchmarks" / "records" / "localisation").glob("*/results-[a-z]*.md"))
FIGURE = re.compile(r"(?<![\w.,:/-])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w,]|\.\d| M\b| ?%| GB| MB| version)")
RECORD = re.compile(r"(benchmarks/records/README\.md|reproduce/\w+/index\.md|benchmarks/README\.md)")
MEASURED = re.compile(r"BLEU|perplexity|alignment error|tokens/s")
OF_THE_PROGRAM = {  # what is no measurement: options, and numbers of papers
    "0.1", "0.15", "0.2", "0.005", "0.01", "0.7", "4.0", "41.0"
}  # fmt: skip


def figures(text: str) -> list[str]:
    """The figures outside code and links."""
    return FIGURE.findall(re.sub(r"`[^`]*`|section [\d.]+|\[[\w./]*\]\(https[^)]*\)|\]\([^)]*\)|\*", " ", text))


@cache
def recorded(record: str) -> frozenset[str]:
    path = ROOT / "docs" / record if record.startswith("reproduce") else ROOT / record
    return frozenset(re.findall(r"\d[\d,]*(?:\.\d+)?", path.read_text(encoding="utf-8")))


def without_record(page: str) -> list[str]:
    """The figures of a page that no linked record has, with their lines."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    start, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    found = []
    for section in (start, *sections):
        shared = {*RECORD.findall(start), *RECORD.findall(section)}
        for line in section.splitlines():
            if line.startswith("|") or MEASURED.search(line):
                known = {n for record in {*RECORD.findall(line)} or shared for n in recorded(record)} | OF_THE_PROGRAM
                found += [f"{number} in: {line}" for number in figures(line) if number not in known]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_figures_have_a_record(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").partition("\n## Message catalogs\n")[0]
    assert not without_record(text)


def test_a_figure_without_a_record_is_found() -> None:
    page = "| 41.2 ([r](../benchmarks/records/README.md)) | 2.4 M |\n43.3 BLEU with everything\n## More\n| 39.6 |"
    assert [each.split()[0] for each in without_record(page)] == ["43.3"]
    assert [each.split()[0] for each in without_record("| 41.2 |")] == ["41.2"]


def rows(text: str) -> list[tuple[str, ...]]:
    """The numbers of each row of the tables."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        numbers = tuple(match[1] for cell in cells if (match := re.match(r"^\**([\d.,]+)\**(?: ?%)?$", cell)))
        found += [numbers] if len(numbers) > 1 else []
    return found


@pytest.mark.parametrize("record", LOCALISATION, ids=lambda path: path.parent.name)
def test_message_catalogs_are_those_of_the_record(record: Path) -> None:
    _, _, section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").partition("\n## Message catalogs\n")
    measured = rows(record.read_text(encoding="utf-8"))
    assert len(measured) >= 7
    assert set(measured) <= set(rows(section))


@pytest.mark.parametrize("record", MULTILINGUAL, ids=lambda path: path.name)
def test_one_model_of_several_languages_is_that_of_the_record(record: Path) -> None:
    _, _, section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").partition("\n## Message catalogs\n")
    (model,) = (
        line
        for line in record.read_text(encoding="utf-8").splitlines()
        if line.count("|") == 7 and "| the model |" in line
    )
    measured = rows(model)[0]
    assert len(measured) == 5
    code = record.name.split("-")[1]
    assert any(line.startswith(f"| {code} |") and rows(line)[0][-5:] == measured for line in section.splitlines())


def test_the_readme_counts_the_comparisons_of_claims() -> None:
    index = (ROOT / "docs" / "reproduce" / "index.md").read_text(encoding="utf-8")
    counted = re.search(r"\*\*(\d+) comparisons on \d+ pages: holds (\d+), does not hold (\d+)", index)
    shown = re.search(r"of (\d+) comparisons (\d+) hold, (\d+) do(?:es)? not", (ROOT / "README.md").read_text())
    assert counted is not None
    assert shown is not None
    assert shown.groups() == counted.groups()


def test_each_model_has_the_learning_rate_with_the_best_result() -> None:
    record = json.loads((ROOT / "benchmarks" / "records" / "learning_rates.json").read_text(encoding="utf-8"))
    found = {tuple(key.split(", ")[:2]): (key, results) for key, results in record.items()}
    assert len(found) == len(record)  # one search of each model
    rates, expected = {}, {}
    for name in sorted({claim for claim, _ in found} | {"bahdanau2015_table1"}):
        claim, searched = read_claim(name, "cpu"), name.replace("table1", "fig2")  # which have the same models
        for run, overrides in claim.runs.items():
            options = learning_rates.options_of((*claim.common, *claim.sizes, *overrides))
            if model := learning_rates.searched(options):
                key, results = found[searched, model[0]]
                rates[name, run] = model[1]
                expected[name, run] = float(learning_rates.best(key, results)) if results else model[1]
    assert rates == expected
