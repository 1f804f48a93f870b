"""Pictures beside sentences that lack the colours, from training to the runtime."""

import json
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.data.corpora.base import Split
from softsearch.data.corpora.shapes import Shapes
from softsearch.errors import ConfigError, InputError
from softsearch.runtime.cli import main
from softsearch.runtime.translator import Translator
from tests.integration.small_runs import configure

COLOURS = re.compile(r" (red|green|blue|yellow)")
OPTIONS = (
    "model=multi_source",
    "data=features_beside_text",
    "model.encoder.feature_dim=60",
    "model.embeddings.dim=64",
    "model.encoder.encoder.hidden_dim=64",
    "model.decoder.hidden_dim=64",
    "model.decoder.attention.window=global",
    "tokenizer=word",
    "batching.tokens=1024",
    "optimizer.lr=0.01",
    "scheduler.warmup_steps=20",
    "trainer=cpu",
    "trainer.max_steps=80",
    "trainer.val_check_interval=80",
    "loss.smoothing=0",
    "resume=null",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its bundle."""
    folder = tmp_path_factory.mktemp("beside")
    shapes = Shapes(train_size=600, val_size=20, test_size=30)
    files, vectors = shapes.files(folder), shapes.features(folder)
    data = []
    for split in get_args(Split):
        captions = files[split][1].read_text(encoding="utf-8")
        (folder / f"{split}.txt").write_text(COLOURS.sub("", captions), encoding="utf-8")
        data.append(f"data.sources.features.{split}=[{vectors[split]},{files[split][1]}]")
        data.append(f"data.sources.text.{split}=[{folder / split}.txt,{files[split][1]}]")
    (folder / "test.npy").symlink_to(vectors["test"])
    paths = (f"run_dir={folder}/run", f"cache_dir={folder}/cache")
    train(configure("train", *OPTIONS, *data, *paths, "name=beside"))
    best = f"ckpt={folder}/run/checkpoints/best.ckpt"
    export(read_options(configure("export", best, f"out={folder}/bundle", paths[1]), Export))
    return folder


def command(folder: Path, *arguments: str) -> int:
    return main(["translate", str(folder / "bundle"), *arguments])


def test_the_runtime_writes_what_training_wrote(folder: Path) -> None:
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert metrics["test/bleu"] > 10
    files = [f"--features={folder}/test.npy", f"--input={folder}/test.txt", f"--output={folder}/out"]
    assert command(folder, *files) == 0
    assert (folder / "out").read_text() == (folder / "run" / "test.hypotheses.txt").read_text()
    assert main(["verify", str(folder / "bundle")]) == 0


def test_checkpoint_and_bundle_are_evaluated_alike(folder: Path) -> None:
    systems = [f"ckpt={folder}/run/checkpoints/best.ckpt", f"bundle={folder}/bundle"]
    evaluate(configure("evaluate", *systems, f"run_dir={folder}/report", f"cache_dir={folder}/cache"))
    report = json.loads((folder / "report" / "report.json").read_text())
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert [system["scores"]["bleu"]["value"] for system in report["systems"]] == [metrics["test/bleu"]] * 2
    named = f"test=[{folder}/test.npy,{folder}/test.txt]"
    with pytest.raises(ConfigError, match=r"give vectors and text as data\.sources with split=test"):
        evaluate(configure("evaluate", systems[0], named, f"run_dir={folder}/other", f"cache_dir={folder}/cache"))


def test_both_sources_are_read(folder: Path) -> None:
    translator = Translator(folder / "bundle")
    vectors = np.load(folder / "test.npy")[:2]
    texts = (folder / "test.txt").read_text().splitlines()[:2]
    first, other = translator.translate([texts[0]] * 2, features=vectors, alignments=True)
    assert first.score != other.score
    assert translator.translate(texts[1:], features=vectors[:1])[0].score != first.score
    assert first.alignments is not None
    tag = first.src_pieces.index("\u2581<and>")
    np.testing.assert_allclose(first.alignments[:, :tag].sum(axis=1), 0.5, atol=1e-5)
    np.testing.assert_allclose(first.alignments[:, tag], 0, atol=1e-6)


def test_a_source_that_lacks_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    translator = Translator(folder / "bundle")
    vectors = np.load(folder / "test.npy")
    with pytest.raises(InputError, match="reads text beside feature vectors; add the lines of text"):
        translator.translate(features=vectors)
    with pytest.raises(InputError, match="reads features of 60 values, but the sources are text without features"):
        translator.translate(["a circle"])
    with pytest.raises(InputError, match="30 examples of features for 1 lines, expected one for each line"):
        translator.translate(["a circle"], features=vectors)
    for count, found in ((29, "29"), (31, "more")):
        (folder / "lines.txt").write_text("a circle\n" * count)
        assert command(folder, f"--features={folder}/test.npy", f"--input={folder}/lines.txt") == 1
        assert f"test.npy has 30 examples and {folder}/lines.txt has {found} lines" in capsys.readouterr().err
