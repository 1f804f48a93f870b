"""Captions of generated pictures, from training to the runtime, and mistakes with feature vectors."""

from pathlib import Path

import numpy as np
import pytest

from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.export import export
from softsearch.app.systems.weights_file import read_tuned
from softsearch.errors import BundleError, CorpusError, InputError
from softsearch.extras.serve.models import Model
from softsearch.extras.sweep.options import Tune
from softsearch.extras.sweep.tune import tune
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.translator import Translator
from tests.support.small_runs import PICTURES, configure, evaluate_alike, export_in, train_in

pytestmark = pytest.mark.day

SIZES = ("train_size=600", "val_size=20", "test_size=30")
OPTIONS = (
    "model=show_attend_tell",
    "data=shapes",
    *(f"data.{size}" for size in SIZES),
    *PICTURES,
    "logger=tensorboard",
    "name=captions",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its bundle."""
    folder = tmp_path_factory.mktemp("captions")
    train_in(folder, *OPTIONS)
    export_in(folder)
    return folder


def features(folder: Path) -> Path:
    return next(folder.glob("cache/shapes-*/test.npy"))


def test_the_runtime_writes_the_captions_of_training(folder: Path) -> None:
    expected = (folder / "run" / "test.hypotheses.txt").read_text()
    files = ["--features", str(features(folder)), "--output", str(folder / "out")]
    assert main(["translate", str(folder / "bundle"), *files]) == 0
    assert (folder / "out").read_text() == expected
    (one,) = Translator(folder / "bundle").translate(features=np.load(features(folder))[:1], alignments=True)
    assert one.alignments is not None
    assert one.alignments.shape == (len(one.tgt_pieces), 37)
    assert one.src_pieces[-1] == "</s>"
    assert not one.alignments[:, -1].any()
    assert main(["verify", str(folder / "bundle")]) == 0


def test_checkpoint_and_bundle_are_evaluated_alike(folder: Path) -> None:
    evaluate_alike(folder, "alignments=true", "heatmaps=1")
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count('<ol class="seen">') == 2  # heatmaps on the picture
    assert page.count(r" \u00d7 36") == 30
    tags = [file.read_bytes() for file in folder.glob("run/tensorboard/events.*")]
    assert any(b"samples/alignments/0" in events for events in tags)


def test_the_first_captions_tune_a_search_and_given_ones_an_export(folder: Path, tmp_path: Path) -> None:
    words = (f"ckpt={folder}/run", f"cache_dir={folder}/cache", f"run_dir={tmp_path}")
    few = ("sentences=5", "searches=1", "space.search.length_penalty=[1.0]")
    tune(read_options(configure("tune", *words, *few), Tune))
    assert read_tuned(tmp_path / "weights.json").validation["sentences"] == 5
    given = f"val=[{features(folder)},{features(folder).with_suffix('.en')}]"
    low = ("precision=int8", "max_bleu_loss=100", f"out={tmp_path / 'int8'}", given)
    export(read_options(configure("export", *words[:2], *low), Export))
    assert Bundle.open(tmp_path / "int8").manifest.trained("precision.sentences") == "30"


def test_what_a_bundle_does_not_read_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    translator = Translator(folder / "bundle")
    with pytest.raises(InputError, match=r"reads features of 60 values, but the sources are text without features"):
        translator.translate(["a line"])
    with pytest.raises(InputError, match=r"reads features of 60 values, but the sources are features of 5 values"):
        translator.translate(features=np.zeros((1, 2, 5), dtype=np.float32))
    with pytest.raises(InputError, match="expected lines of text, or features"):
        translator.translate()
    with pytest.raises(InputError, match="reads feature vectors alone; leave out the lines of text"):
        translator.translate(["a line"], features=np.zeros((1, 2, 60), dtype=np.float32))
    with pytest.raises(InputError, match="example 1 has 600 positions, 600 tokens in all, expected fewer than 512"):
        translator.translate(features=np.zeros((1, 600, 60), dtype=np.float32))
    with pytest.raises(CorpusError, match="features: example 3 has NaN"):
        translator.translate(features=np.full((1, 2, 60), np.nan, dtype=np.float32), first_line=3)
    with pytest.raises(BundleError, match="reads feature vectors, but the server accepts only text"):
        Model("captions", Bundle.open(folder / "bundle"))
    np.save(folder / "other.npy", np.zeros((2, 3)))
    assert main(["translate", str(folder / "bundle"), "--features", str(folder / "other.npy")]) == 1
    assert "other.npy has values of float64, expected float16 or float32" in capsys.readouterr().err
