"""What the evaluation command says of ensembles, on small bundles and in this process."""

import json
from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.search.ensemble import AVERAGES, Average
from tests.unit.runtime.bundles import SRC_LINES, TGT_LINES, make_bundle


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundles, ``one`` and ``two``, and a text, ``x.en`` and ``x.de``."""
    folder = tmp_path_factory.mktemp("evaluated")
    for seed, name in enumerate(("one", "two")):
        make_bundle(folder / name, seed=seed)
    for file, lines in (("x.en", SRC_LINES), ("x.de", TGT_LINES)):
        (folder / file).write_text("".join(f"{line}\n" for line in lines[:4]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("average", AVERAGES)
def test_a_report_says_by_which_mean_its_ensemble_wrote_and_why_a_figure_is_missing(
    average: Average, folder: Path, tmp_path: Path
) -> None:
    options = (
        f"bundle=[{folder / 'one'},{folder / 'two'}]",
        f"test=[{folder / 'x.en'},{folder / 'x.de'}]",
        f"ensemble={average}",
        "search=greedy",
        "search.max_length_factor=1",
        "overlap=false",
    )
    evaluate(composed("evaluate", *options, f"run_dir={tmp_path}"))
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [system["search"] for system in report["systems"]] == [f"greedy, ensemble by {average}", "greedy", "greedy"]
    missing = ["ensemble"] * (average == "unnormalised_log_probs")
    assert [system["name"] for system in report["systems"] if system["nll"] is None] == missing
    reasons = [warning for warning in report["warnings"] if "has no -log p of a reference token: " in warning]
    assert [warning.split()[0] for warning in reasons] == missing
