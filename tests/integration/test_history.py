"""The history in its smallest form: trained, exported and written as a site; a second time nothing is trained."""

import json
from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.errors import ConfigError
from softsearch.extras.claims.history import history
from softsearch.extras.claims.options import History
from softsearch.files import MANIFEST
from softsearch.runtime.manifest import Manifest
from tests.support.commands import SMALL, run

pytestmark = pytest.mark.day


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_two_models_come_to_a_page(page: Path, tmp_path: Path) -> None:
    del page
    places = [f"{name}={tmp_path / name}" for name in ("out", "runs_dir", "hydra.run.dir", "cache_dir")]
    small = [option for option in SMALL if option.endswith("dim=16")]
    options = ("budget=smallest", "models=[nematus,rnn]", f"+budget.options.nematus={small}", *places)
    first = run("history", *options)
    assert first.returncode == 0, first.stderr
    site = json.loads((tmp_path / "out" / "site.json").read_text(encoding="utf-8"))
    assert [(each["name"], each["about"]["year"]) for each in site["models"]] == [("rnn", 1990), ("nematus", 2017)]
    assert [each["has_attention"] for each in site["models"]] == [False, True]
    for each in site["models"]:
        manifest = Manifest.parse((tmp_path / "out" / "models" / each["name"] / MANIFEST).read_bytes())
        assert bool(manifest.trained("precision.name")) != ("float32" in each["about"]["note"])
        assert each["about"]["bleu"] >= 0
        assert "chrF" in each["about"]["errors"]
    assert [each["note"].split(".")[0] for each in site["examples"]] == [
        "A long sentence", "A rare word", "Another word order"
    ]  # fmt: skip
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs_dir").rglob("*")}
    second = run("history", *options)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs_dir").rglob("*")} == before
    assert "http.server" in second.stdout


def test_a_model_that_reads_backwards_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    places = [f"{name}={tmp_path}/{name}" for name in ("out", "runs_dir", "run_dir", "cache_dir")]
    given = ("budget=smallest", "models=[rnn,sutskever2014]", "budget.options.sutskever2014=[]")
    with pytest.raises(ConfigError, match=r"^sutskever2014: reads or writes from the end .*add '\+\+budget"):
        history(read_options(composed("history", *given, *places), History))
