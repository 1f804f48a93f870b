"""Attention of each head of a bundle."""

from pathlib import Path

import numpy as np
import pytest

from softsearch import Translator
from softsearch.errors import BundleError, ConfigError
from tests.support.bundles import make_bundle

LINES = ["one two three", "four", "", "a cat sat, and so did we. " * 3]
NAMES = ["mean of all layers and heads", *(f"layer {layer}, head {head}" for layer in range(2) for head in range(2))]


@pytest.fixture(scope="module")
def headed(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator(make_bundle(tmp_path_factory.mktemp("exports") / "headed", heads=2).path, threads=1)


def test_alignments_are_those_of_the_head(headed: Translator) -> None:
    own = headed.translate(LINES, n_best=2, alignments=True)
    found = {name: headed.translate(LINES, n_best=2, head=name) for name in NAMES}
    for number, (line, translation) in enumerate(zip(LINES, own, strict=True)):
        for rank, hypothesis in enumerate(translation.n_best):
            heads = {name: found[name][number].n_best[rank] for name in NAMES}
            assert {each.text for each in heads.values()} == {hypothesis.text}
            if not line:
                continue
            weights = np.array([each.alignments for each in heads.values()])
            np.testing.assert_allclose(weights[-1], hypothesis.alignments, atol=1e-6)
            np.testing.assert_allclose(weights[0], weights[1:].mean(axis=0), atol=1e-6)
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
            assert (np.abs(weights[1:-1] - weights[-1]).max(axis=(1, 2)) > 0.01).all()


@pytest.mark.parametrize("options", [{"beam": 1}, {"search": "sample"}, {"max_length": 2}, {"search": "exact"}])
def test_any_search_may_have_found_the_translation(headed: Translator, options: dict[str, object]) -> None:
    (found,) = headed.translate(LINES[:1], head=NAMES[1], **options)
    assert found.alignments is not None
    assert found.alignments.shape == (len(found.tgt_pieces), len(found.src_pieces))


def test_other_names_and_models_without_heads_are_refused(headed: Translator, bundle_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"head is 'layer 2, head 0', but .*headed has one of: mean of all"):
        headed.translate(LINES, head="layer 2, head 0")
    both = Translator([headed.system.origin, bundle_dir])
    for translator in (both, Translator(bundle_dir)):
        with pytest.raises(ConfigError, match="has none: only the bundle of one Transformer has heads"):
            translator.translate(LINES, head=NAMES[0])
    with pytest.raises(ConfigError, match="paragraphs and head cannot be combined"):
        headed.translate(LINES, head=NAMES[0], paragraphs=True)


def test_a_bundle_that_was_replaced_is_refused(tmp_path: Path) -> None:
    translator = Translator(make_bundle(tmp_path / "headed", heads=2).path)
    make_bundle(tmp_path / "headed", heads=2, seed=1)
    with pytest.raises(BundleError, match="has been replaced since it was opened; open it again"):
        translator.translate(LINES, head=NAMES[0])
