"""Captions of generated pictures, from training to the runtime, and mistakes with feature vectors."""

import json
from pathlib import Path

import numpy as np
import pytest

from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.errors import BundleError, CorpusError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.server.models import Model
from softsearch.runtime.translator import Translator
from tests.integration.small_runs import configure

SIZES = ("train_size=600", "val_size=20", "test_size=30")
OPTIONS = (
    "model=show_attend_tell",
    "data=shapes",
    *(f"data.{size}" for size in SIZES),
    "model.decoder.hidden_dim=64",
    "tokenizer=word",
    "batching.tokens=1024",
    "optimizer.lr=0.01",
    "scheduler.warmup_steps=20",
    "trainer=cpu",
    "trainer.max_steps=80",
    "trainer.val_check_interval=80",
    "loss.smoothing=0",
    "logger=tensorboard",
    "resume=null",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its bundle."""
    folder = tmp_path_factory.mktemp("captions")
    paths = (f"run_dir={folder}/run", f"cache_dir={folder}/cache")
    train(configure("train", *OPTIONS, *paths, "name=captions"))
    best = f"ckpt={folder}/run/checkpoints/best.ckpt"
    export(read_options(configure("export", best, f"out={folder}/bundle", paths[1]), Export))
    return folder


def features(folder: Path) -> Path:
    return next(folder.glob("cache/shapes-*/test.npy"))


def test_the_runtime_writes_the_captions_of_training(folder: Path) -> None:
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert metrics["test/bleu"] > 10
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
    systems = [f"ckpt={folder}/run/checkpoints/best.ckpt", f"bundle={folder}/bundle"]
    paths = (f"run_dir={folder}/report", f"cache_dir={folder}/cache")
    evaluate(configure("evaluate", *systems, *paths, "alignments=true", "heatmaps=1"))
    report = json.loads((folder / "report" / "report.json").read_text())
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert [system["scores"]["bleu"]["value"] for system in report["systems"]] == [metrics["test/bleu"]] * 2
    assert report["warnings"] == []
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count('<ol class="seen">') == 2  # heatmaps on the picture
    assert page.count(r" \u00d7 36") == 30
    tags = [file.read_bytes() for file in folder.glob("run/tensorboard/events.*")]
    assert any(b"samples/alignments/0" in events for events in tags)


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
    with pytest.raises(BundleError, match="reads feature vectors, and the server takes text alone"):
        Model("captions", Bundle.open(folder / "bundle"))
    np.save(folder / "other.npy", np.zeros((2, 3)))
    assert main(["translate", str(folder / "bundle"), "--features", str(folder / "other.npy")]) == 1
    assert "other.npy has values of float64, expected float16 or float32" in capsys.readouterr().err
