"""examples/neural_metric: its own tests, and its metric in evaluate as a user gives it."""

import json
import os
from pathlib import Path

import pytest

from tests.support.commands import ROOT, SERVER, run
from tests.support.programs import run_python

pytestmark = pytest.mark.day

EXAMPLE = ROOT / "examples" / "neural_metric"
PATHS = os.pathsep.join(map(str, (EXAMPLE, EXAMPLE / "tests" / "scorer")))
GOLDEN = ROOT / "tests" / "golden"
SAVE = "import comet, torch; torch.save(comet.Scorer().state_dict(), 'model.ckpt')"


@pytest.mark.nightly
def test_its_own_tests_pass() -> None:
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests")
    done = run_python(*command, cwd=EXAMPLE, PYTHONPATH=str(EXAMPLE))
    assert done.returncode == 0, done.stdout


def test_evaluate_reports_it_with_intervals(tmp_path: Path) -> None:
    model = tmp_path / "model.ckpt"
    (tmp_path / "save.py").write_text(SAVE)
    assert SERVER.run([str(tmp_path / "save.py")], cwd=tmp_path, env={"PYTHONPATH": PATHS}).returncode == 0
    for name, lang in (("sources.txt", "en"), ("translations.txt", "de")):
        (tmp_path / f"x.{lang}").write_bytes((GOLDEN / name).read_bytes())
    text = f"test=[{tmp_path}/x.en,{tmp_path}/x.de]"
    folders = (f"hydra.run.dir={tmp_path}/report", f"cache_dir={tmp_path}/cache")
    metric = ("metric=[comet,bleu]", f"metric.comet.model={model}", f"--config-dir={EXAMPLE}/softsearch_configs")
    done = run("evaluate.py", f"ckpt={GOLDEN}/checkpoint.ckpt", text, *folders, *metric, PYTHONPATH=PATHS)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    found = report["systems"][0]["scores"]["comet"]
    assert found["low"] < found["value"] < found["high"]
    assert found["signature"].startswith(f"model:{model}|bs:1000")
    assert (report["sentence_metric"], report["metrics"]["comet"]["title"]) == ("comet", "COMET")
