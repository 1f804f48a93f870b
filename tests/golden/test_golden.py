"""Files of earlier versions load for ever, and translate as they did."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from softsearch import Bundle, Translator
from softsearch.app.systems.open import open_any
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import awkward_lines

FOLDER = Path(__file__).parent
SOURCES, TRANSLATIONS = (
    (FOLDER / name).read_text(encoding="utf-8").splitlines() for name in ("sources.txt", "translations.txt")
)


@pytest.mark.parametrize(("name", "log_prob", "precision"), [("bundle", -1.0883, 2e-3), ("bundle-int8", -1.0914, 2e-2)])
def test_the_bundle_translates_as_it_did(name: str, log_prob: float, precision: float) -> None:
    translations = Translator(Bundle.open(FOLDER / name)).translate(SOURCES, beam=5, n_best=2, alignments=True)
    assert [translation.text for translation in translations] == TRANSLATIONS
    first = translations[0]
    assert first.log_prob == pytest.approx(log_prob, abs=precision)
    assert first.alignments is not None
    assert first.alignments.shape == (len(first.tgt_pieces), len(first.src_pieces))


def test_the_single_graph_translates_as_it_did_without_softsearch() -> None:
    assert Bundle.open(FOLDER / "single").manifest.is_single
    example = FOLDER.parents[1] / "examples" / "translate.py"
    command = [sys.executable, str(example), str(FOLDER / "single")]
    text, expected = awkward_lines()
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    assert done.stdout.decode() == expected, done.stderr
    assert Translator(FOLDER / "bundle").translate([SOURCES[1].replace(" ", "\r")])[0].text == TRANSLATIONS[1]


def test_the_checkpoint_translates_as_it_did() -> None:
    (system,) = open_any([str(FOLDER / "checkpoint.ckpt")])
    src, tgt = system.tokenizers
    n_best_lists = translate_ids(system.step_fn, BeamSearch(), [src.encode(line) for line in SOURCES], batch_tokens=500)
    assert [tgt.decode(n_best[0].tokens) for n_best in n_best_lists] == TRANSLATIONS


def test_the_checkpoint_has_all_that_training_goes_on_with() -> None:
    checkpoint = load_checkpoint(FOLDER / "checkpoint.ckpt")
    assert checkpoint["global_step"] in (400, 800, 1200)
    assert {"optimizer_states", "lr_schedulers", "loops", "callbacks", "ParallelDataModule"} <= set(checkpoint)
    assert all(torch.isfinite(weight).all() for weight in checkpoint["state_dict"].values())
