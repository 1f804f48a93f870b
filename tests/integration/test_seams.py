"""One of each kind of part from a package outside the tree, as docs/layout.md says, and how many files each takes."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from softsearch.app.config.allowed_classes import trusting
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.runtime.options import installed_searches
from softsearch.runtime.translator import Translator
from tests.support.serving import BUNDLE
from tests.support.small_runs import OPTIONS, SIZES, configure, shrink

pytestmark = pytest.mark.day

PACKAGE = "outside_seams"
FILES = {  # kind of part -> the files that add it
    "model": {
        "my_model.py": """
from softsearch.models.attentional import AttentionalDecoder

class Decoder(AttentionalDecoder):
    pass
""",
        "configs/model/mine.yaml": f"""
defaults: [rnnsearch, _self_]
decoder:
  _target_: {PACKAGE}.my_model.Decoder
""",
    },
    "metric": {
        "my_metric.py": """
from softsearch.evaluation.metrics import Metric

class Exclamations(Metric):
    title, higher_is_better, percent, limits = "exclamations", True, False, (0.0, 9.0)
    signature = "unit:character"

    def statistics(self, hypotheses, references):
        return [(h.count("!"), 1) for h in hypotheses]

    def score(self, sums):
        return sums[0] / sums[1]
""",
        "configs/metric/mine.yaml": f"mine: {{_target_: {PACKAGE}.my_metric.Exclamations}}\n",
    },
    "source": {
        "my_source.py": """
from softsearch.data.corpora.spellout import Spellout

class Source(Spellout):
    pass
""",
        "configs/data/mine.yaml": f"defaults: [spellout, _self_]\n_target_: {PACKAGE}.my_source.Source\n",
    },
    "method": {
        "my_method.py": """
from softsearch.training import teacher_forcing

def method(step):
    method.steps = step.number
    step.log("words", len(step.batch.target_places()))
    return teacher_forcing(step)
""",
        "configs/method/mine.yaml": f"_target_: {PACKAGE}.my_method.method\n_partial_: true\n",
    },
    "methods": {
        "configs/method/both.yaml": """
defaults: [combined, r_drop@methods.r_drop, mine@methods.own, _self_]
weights: {r_drop: 0.5}
"""
    },
    "loss": {
        "my_loss.py": """
from softsearch.models import CrossEntropy

class Warming(CrossEntropy):
    def begin_step(self, step):
        self.smoothing = 0.1 * step.number
        step.log("smoothing", self.smoothing)
""",
        "configs/loss/mine.yaml": f"_target_: {PACKAGE}.my_loss.Warming\n",
    },
    "search": {
        "my_search.py": """
from dataclasses import dataclass

from softsearch.search.greedy import Greedy
from softsearch.search.options import Lengths

@dataclass(frozen=True, kw_only=True)
class Short(Lengths):
    def __call__(self, step_fn, src):
        return Greedy(max_length_factor=0.0, max_length_offset=2)(step_fn, src)
""",
        "configs/search/mine.yaml": f"_target_: {PACKAGE}.my_search.Short\n",
        "../outside_seams-1.0.dist-info/entry_points.txt": f"[softsearch.searches]\nmine = {PACKAGE}.my_search:Short\n",
    },
    "format": {
        "my_format.py": """
from softsearch.export.format import ExportFormat, ExportSummary
from softsearch.export.parity import compare, random_sentences, stepping

class Names(ExportFormat):
    name = "mine"

    def write(self, inputs, out):
        src = random_sentences((1, 5), inputs.tokenizers[0].vocab_size, inputs.max_src_tokens)
        parity = compare(stepping(inputs.exact()), stepping(inputs.reference), src)
        out.write_text("\\n".join(inputs.model.state_dict()))
        return ExportSummary(backend="Text", parity=parity)
""",
        "configs/format/mine.yaml": f"_target_: {PACKAGE}.my_format.Names\n",
    },
}  # a command: see the tests of softsearch.commands


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package, installed."""
    package = tmp_path / "site" / PACKAGE
    for files in FILES.values():
        for name, text in files.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text(text)
    about = tmp_path / "site" / f"{PACKAGE}-1.0.dist-info" / "METADATA"
    about.write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    installed_searches.cache_clear()
    yield tmp_path
    installed_searches.cache_clear()


def test_one_of_each_kind_is_added_from_outside(home: Path) -> None:
    assert {kind: len(files) for kind, files in FILES.items()} == {
        "model": 2, "metric": 2, "source": 2, "method": 2, "methods": 1, "loss": 2, "search": 3, "format": 2
    }  # fmt: skip
    common = (f"hydra.searchpath=[file://{home}/site/{PACKAGE}/configs]", f"cache_dir={home}/cache")
    chosen = [f"{group}=mine" for group in ("model", "data", "loss", "search", "metric")] + ["method=both"]
    run = home / "run"
    steps = ("trainer.max_steps=2", "trainer.val_check_interval=2", "monitor=val/loss", "trainer.log_every_n_steps=1")
    small = [option for option in OPTIONS if not option.startswith(("search", "trainer.max", "trainer.val"))]
    config = configure("train", *small, *chosen, *steps, *common, "name=mine", f"run_dir={run}")
    shrink(config.model, SIZES)
    train(config)
    from outside_seams.my_method import method

    assert method.steps == 1  # taken before the second
    logged = [row for row in csv.DictReader((run / "metrics.csv").read_text().splitlines()) if row["train/smoothing"]]
    assert [float(row["train/smoothing"]) for row in logged] == [0.0, pytest.approx(0.1)]
    for row in logged:
        words, own, other = (float(row[f"train/{name}"]) for name in ("own/words", "own/loss", "r_drop/loss"))
        assert words > 1
        assert float(row["train/loss"]) == pytest.approx(own + 0.5 * other, rel=1e-5)
    assert "test/mine" in json.loads((run / "metrics.json").read_text())

    files = (f"ckpt={run}", *common)
    with trusting([PACKAGE]):
        evaluate(configure("evaluate", *files, "search=mine", "metric=mine", f"run_dir={home}/report"))
        export(read_options(configure("export", *files, f"out={home}/names.txt", "format=mine"), Export))
    (system,) = json.loads((home / "report" / "report.json").read_text())["systems"]
    assert system["scores"].keys() == {"mine"}
    assert "decoder.output_projection.weight" in (home / "names.txt").read_text()
    found, greedy = (
        Translator(BUNDLE, threads=1).translate(["one", "two"], **options)
        for options in ({"search": "mine"}, {"search": "greedy", "max_length": "2"})
    )
    assert [t.text for t in found] == [t.text for t in greedy]
