"""The published pages of claims: their numbers, trainings and words are those of results and claims."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.text import Text

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.extras.claims.claim import claim_names, read_claim
from softsearch.extras.claims.claim_figure import claim_chart
from softsearch.extras.claims.claim_page import claim_page
from softsearch.extras.claims.command import PAGE, write_pages
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.register import program_hash
from softsearch.extras.claims.results import RESULTS, judged_again, published
from softsearch.extras.claims.trainings import trainings
from softsearch.report.drawing import style
from tests.support.commands import ROOT

PAGES = ROOT / "docs" / "reproduce"


@pytest.mark.day
@pytest.mark.parametrize("scale", ["smallest", *(pytest.param(s, marks=pytest.mark.nightly) for s in ("cpu", "paper"))])
@pytest.mark.parametrize("name", claim_names())
def test_every_claim_composes_at_every_scale(name: str, scale: str) -> None:
    claim = read_claim(name, scale)
    assert claim.minutes <= 240  # an hour for each of four seeds
    options = read_options(composed("reproduce", f"claim={name}", "run_dir=out"), Reproduce)
    assert bool(trainings(replace(claim, seeds=claim.seeds[:1]), options)) == bool(claim.runs)
    assert not [run for run in claim.runs if "_" in claim.names.get(run, run)], "give it words in names:"
    drawn = claim.figure.measure if isinstance(claim.figure.measure, tuple) else (claim.figure.measure,)
    assert {*claim.tables, *drawn} <= {*claim.measures}
    by_seeds = claim.runs and [each for each in claim.holds if each.chance == "seeds" and isinstance(each.right, str)]
    assert scale == "smallest" or not by_seeds or len(claim.seeds) >= 4  # three against three have a p of 0.1 at least


@pytest.mark.parametrize("name", sorted(published(PAGES)))
def test_the_numbers_of_a_page_are_those_of_its_results(name: str) -> None:
    results = published(PAGES)[name]
    page = claim_page(results)
    assert (PAGES / name / PAGE).read_text(encoding="utf-8") == page
    assert re.search(rf"^softsearch reproduce claim={name} scale={results['scale']}(  # .*)?$", page, re.M)
    claim = read_claim(name, results["scale"])
    assert results == judged_again(results, claim)
    thresholds = {each.says for each in claim.holds if not (isinstance(each.left, str) and isinstance(each.right, str))}
    assert all(each["margin"] or each["says"] in thresholds for each in results["comparisons"] if each["p"] is not None)
    assert {each["hash"] for each in results["comparisons"]} <= results["register"].keys()


@pytest.mark.day
@pytest.mark.parametrize("name", sorted(published(PAGES)))
def test_the_trainings_of_a_page_are_those_of_its_claim(name: str) -> None:
    results = published(PAGES)[name]
    claim = read_claim(name, results["scale"])
    if results["program"] != program_hash(claim):
        assert "**These results are of an older program.**" in (PAGES / name / PAGE).read_text(encoding="utf-8")
        return
    assert "the next results" not in results["changed"]  # they are here
    machine = {"trainer=gpu", "trainer.precision=32-true", "trainer.precision=bf16-mixed"}  # overrides= of a machine
    shown = {(each["run"], each["seed"]): {*each["overrides"]} - machine for each in results["trainings"]}
    common = {*claim.common, *claim.sizes} - machine
    assert (
        shown.items() <= {(r, seed): common | {*own} for r, own in claim.runs.items() for seed in claim.seeds}.items()
    )


@pytest.mark.parametrize("name", sorted(published(PAGES)))
def test_a_page_and_its_figure_have_words_instead_of_names(name: str) -> None:
    results = published(PAGES)[name]
    whole = claim_page(results)
    assert "\n## Results\n\n**" in whole
    page = re.sub("`[^`]*`", "", whole.partition("\n## Results\n")[2].partition("\n## ")[0])
    with style():
        figure = claim_chart(results)
        figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert not re.findall(r"\w*[a-z]_\w+", "\n".join([page, *texts]))


@pytest.mark.day
def test_the_list_of_claims_is_up_to_date(tmp_path: Path) -> None:
    for name, results in published(PAGES).items():
        (tmp_path / name).mkdir()
        (tmp_path / name / RESULTS).write_text(json.dumps(results))
    write_pages(tmp_path)
    assert (PAGES / PAGE).read_text(encoding="utf-8") == (tmp_path / PAGE).read_text(encoding="utf-8")
