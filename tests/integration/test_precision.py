"""A bundle in int8 and in float16: made by the command, used as any other, refused where it translates worse."""

import re
from pathlib import Path

import onnx
import pytest

from softsearch import Translator
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from tests.support.commands import ROOT, run

pytestmark = pytest.mark.day

GOLDEN = ROOT / "tests" / "golden"
SOURCES = (GOLDEN / "sources.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def int8(cache: Path) -> Bundle:
    """A bundle with a shortlist, from the checkpoint of a GRU with attention."""
    options = (f"ckpt={GOLDEN / 'checkpoint.ckpt'}", f"out={cache / 'int8'}", f"cache_dir={cache}")
    done = run("export.py", *options, "precision=int8", "shortlist=10", f"hydra.run.dir={cache}")
    assert done.returncode == 0, done.stderr
    for pattern in ("50 sentences of val.en", r"│ float32   │ [89]\d\.\d\d │", r"│ int8      │ [89]\d\.\d\d │"):
        assert re.search(pattern, done.stdout), done.stdout
    return Bundle.open(cache / "int8")


def test_the_bundle_says_what_it_is(int8: Bundle) -> None:
    facts = int8.manifest.training["precision"]
    assert facts["name"] == "int8"
    assert facts["sentences"] == 50
    assert facts["before"] > 80
    assert facts["after"] > facts["before"] - 0.5
    assert facts["agreement"] > 0.9
    assert re.search(r"\| precision \| int8: BLEU [89]\d\.", int8.files["README.md"].decode())
    step = onnx.load_from_string(int8.files["decoder_step.onnx"]).graph
    matrices = [tensor for tensor in step.initializer if len(tensor.dims) > 1]
    assert len(matrices) > 5
    assert {tensor.data_type for tensor in matrices} == {onnx.TensorProto.INT8}


def test_every_command_takes_it(int8: Bundle, tmp_path: Path) -> None:
    expected, golden, text = GOLDEN / "translations.txt", GOLDEN / "bundle", GOLDEN / "sources.txt"
    assert main(["verify", str(int8.path)]) == 0
    for others in ([], ["--shortlist", "140"], [str(golden)]):
        out = tmp_path / "out.txt"
        assert main(["translate", str(int8.path), *others, "--input", str(text), "--output", str(out)]) == 0
        assert out.read_text() == expected.read_text(), others
    assert main(["score", str(int8.path), str(text), str(expected)]) == 0
    assert main(["bench", str(int8.path), str(text)]) == 0


@pytest.mark.nightly
def test_a_line_is_translated_alike_alone_and_beside_others(int8: Bundle) -> None:
    translator = Translator(int8)
    for together, line in zip(translator.translate(SOURCES), SOURCES, strict=True):
        (alone,) = translator.translate([line])
        assert alone.text == together.text
        assert alone.score == pytest.approx(together.score, abs=1e-5)


def test_float16_translates_as_float32_does(cache: Path) -> None:
    options = (f"ckpt={GOLDEN / 'checkpoint.ckpt'}", f"out={cache / 'fp16'}", f"cache_dir={cache}")
    done = run("export.py", *options, "precision=fp16", f"hydra.run.dir={cache}")
    assert done.returncode == 0, done.stderr
    translations = Translator(cache / "fp16").translate(SOURCES)
    assert [t.text for t in translations] == (GOLDEN / "translations.txt").read_text(encoding="utf-8").splitlines()


def test_a_bundle_that_translates_worse_is_not_written(cache: Path, tmp_path: Path) -> None:
    # The same function in float32: one unit of the readout is 10,000 times larger, and its weights as much smaller. No
    # scale fits that unit and the others.
    checkpoint = load_checkpoint(GOLDEN / "checkpoint.ckpt")
    weights, factor = checkpoint["state_dict"], 1e4
    readers = [
        name for name in weights if "input_projection.weight" in name or "readout.projections.embedding.w" in name
    ]
    assert len(readers) == 4
    for name in readers:  # of the embedding, which is the output layer, too
        weights[name][:, 0] *= factor
    for name in ("model.encoder.embedding", "model.decoder.embedding", "model.decoder.output_projection"):
        weights[f"{name}.weight"] = weights[f"{name}.weight"].clone()
        weights[f"{name}.weight"][:, 0] /= factor
    for name in weights:
        if "readout.projections" in name:
            weights[name][:2] *= factor
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "scaled.ckpt")
    options = (f"ckpt={tmp_path / 'scaled.ckpt'}", f"out={tmp_path / 'bundle'}", f"cache_dir={cache}")
    done = run("export.py", *options, "precision=int8", f"hydra.run.dir={cache}")
    assert done.returncode == 1
    assert re.search(r"│ float32   │ [89]\d\.\d\d │", done.stdout)
    assert "BLEU on 50 validation sentences, expected at most 0.5; nothing was written; export with" in done.stderr
    assert not (tmp_path / "bundle").exists()
    done = run("export.py", *options, "precision=int8", "max_bleu_loss=100", f"hydra.run.dir={cache}")
    assert done.returncode == 0, done.stderr
