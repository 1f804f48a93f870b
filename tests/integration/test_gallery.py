"""The pictures of docs/gallery are those of the models: their attention, their curves, and a search as it went."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from softsearch.app.config.composition import CONFIGS
from softsearch.app.systems.open import open_systems
from softsearch.report.drawing import COLOURS
from softsearch.search.beam import BeamSearch
from tests.gallery import BEAM, FOLDER, KINDS, PAIR, PERPLEXITY, SCORE, draw_attention, draw_beam, draw_learning
from tests.support.commands import ROOT

pytestmark = pytest.mark.day

CHECKPOINT = ROOT / "tests" / "golden" / "checkpoint.ckpt"


def test_pictures_are_those_of_the_models(tmp_path: Path) -> None:
    (system,) = open_systems(str(CHECKPOINT), None, None)
    src, tgt = system.tokenizers
    best = BeamSearch(beam=BEAM)(system.step_fn, [src.encode(PAIR[0])])[0][0]
    assert draw_beam(system, tmp_path / "beam.png") == tgt.decode(best.tokens)
    assert draw_attention({"a": system, "b": system}, tmp_path / "attention.png") == ["a", "b"]
    models = [name for kind in KINDS.values() for name in kind]
    draw_learning(
        {name: dict.fromkeys((SCORE, PERPLEXITY), ([40, 80], [10.0, 20.0])) for name in models}, tmp_path / "curves.png"
    )
    for name, colours in (("beam.png", 1), ("curves.png", max(map(len, KINDS.values())))):
        pixels = {tuple(pixel) for pixel in np.rint(255 * imread(tmp_path / name)[..., :3]).astype(int).reshape(-1, 3)}
        assert sum(tuple(bytes.fromhex(colour[1:])) in pixels for colour in COLOURS) == colours
    page = (ROOT / FOLDER / "index.md").read_text(encoding="utf-8")
    for path in (ROOT / FOLDER).glob("*.png"):
        assert f"]({path.name})" in page
        assert path.stat().st_size < 150_000


def test_every_architecture_is_in_the_gallery() -> None:
    """But those that are larger forms of others, and the one that reads two texts, which no generated corpus has."""
    models = {path.stem for path in (CONFIGS / "model").glob("*.yaml")}
    left_out = {"rnnsearch_paper", "transformer_base", "transformer_big", "multi_source"}
    assert models - {name for kind in KINDS.values() for name in kind} == left_out
