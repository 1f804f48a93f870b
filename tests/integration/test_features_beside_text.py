"""Pictures beside sentences that lack the colours, from training to the runtime."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from softsearch.data.corpora.base import Split
from softsearch.data.corpora.shapes import Shapes
from softsearch.errors import ConfigError, InputError
from softsearch.runtime.cli import main
from softsearch.runtime.translator import Translator
from tests.support.small_runs import PICTURES, evaluate_alike, evaluate_in, export_in, train_in

pytestmark = pytest.mark.day

COLOURS = re.compile(r" (red|green|blue|yellow)")
OPTIONS = (
    "model=multi_source",
    "data=features_beside_text",
    "model.encoder.feature_dim=60",
    "model.embeddings.dim=64",
    "model.encoder.encoder.hidden_dim=64",
    "model.encoder.encoder.num_layers=1",
    "model.decoder.num_layers=1",
    "model.decoder.attention.window=global",
    *PICTURES,
    "name=beside",
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
    train_in(folder, *OPTIONS, *data)
    export_in(folder)
    return folder


def command(folder: Path, *arguments: str) -> int:
    return main(["translate", str(folder / "bundle"), *arguments])


def test_the_runtime_writes_what_training_wrote(folder: Path) -> None:
    files = [f"--features={folder}/test.npy", f"--input={folder}/test.txt", f"--output={folder}/out"]
    assert command(folder, *files) == 0
    assert (folder / "out").read_text() == (folder / "run" / "test.hypotheses.txt").read_text()
    assert main(["verify", str(folder / "bundle")]) == 0


def test_checkpoint_and_bundle_are_evaluated_alike(folder: Path) -> None:
    evaluate_alike(folder)
    named = f"test=[{folder}/test.npy,{folder}/test.txt]"
    with pytest.raises(ConfigError, match=r"give vectors and text as data\.sources with split=test"):
        evaluate_in(folder, f"ckpt={folder}/run/checkpoints/best.ckpt", named)


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
    with pytest.raises(InputError, match="reads text with feature vectors; add the lines of text"):
        translator.translate(features=vectors)
    with pytest.raises(InputError, match="reads features of 60 values, but the sources are text without features"):
        translator.translate(["a circle"])
    with pytest.raises(InputError, match="30 examples of features for 1 lines, expected one for each line"):
        translator.translate(["a circle"], features=vectors)
    for count, found in ((29, "29"), (31, "more")):
        (folder / "lines.txt").write_text("a circle\n" * count)
        assert command(folder, f"--features={folder}/test.npy", f"--input={folder}/lines.txt") == 1
        assert f"test.npy has 30 examples and {folder}/lines.txt has {found} lines" in capsys.readouterr().err
