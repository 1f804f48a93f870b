"""Every claim is tried in its smallest form: trained, measured, drawn and judged."""

import json
from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.extras.claims.claim import claim_names, read_claim
from softsearch.extras.claims.command import FIGURE, PAGE, reproduce
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.results import RESULTS

pytestmark = pytest.mark.day

FAST = {"parallel_training"}  # without trainings, which test_history.py starts in the same way


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims share their trainings here."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[] if x in FAST else pytest.mark.nightly) for x in claim_names()]
)
@pytest.mark.timeout(900)
def test_the_smallest_form_of_a_claim_comes_to_an_end(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    places = (f"runs_dir={folder / 'runs'}", f"cache_dir={folder / 'cache'}", f"run_dir={tmp_path}")
    reproduce(read_options(composed("reproduce", f"claim={name}", "scale=smallest", *places), Reproduce))
    results = json.loads((tmp_path / name / RESULTS).read_text(encoding="utf-8"))
    assert len(results["comparisons"]) == len(read_claim(name, "smallest").holds)
    assert {path.name for path in (tmp_path / name).iterdir()} == {RESULTS, PAGE, FIGURE}
    assert all(results["tables"].values())
