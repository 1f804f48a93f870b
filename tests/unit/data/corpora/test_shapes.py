"""Generated pictures with captions."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from softsearch.data.corpora.features import FeatureFiles
from softsearch.data.corpora.shapes import POSITIONS, Shapes, _Object, _scenes, caption, draw, patches
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.text.vocabulary import EOS, FIRST_TAG

SHAPES = Shapes(train_size=60, val_size=8, test_size=5)
SCENE = (_Object(0, 2, "square", "red", "large", 0, 0), _Object(1, 0, "circle", "blue", "small", 0, 0))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_picture_has_the_shapes_of_its_caption() -> None:
    picture = draw(SCENE)
    assert caption(SCENE) == "a large red square above a small blue circle"
    assert picture.shape == (48, 48, 3)
    reds = (picture == (220, 30, 30)).all(-1)
    assert reds.sum() == 14 * 14
    assert reds[1:15, 33:47].all()
    blues = (picture == (40, 60, 230)).all(-1)
    assert 20 < blues.sum() < 8 * 8  # a circle in a box of 8 by 8
    assert blues[20:28, 4:12].sum() == blues.sum()


def test_captions_say_where_things_are() -> None:
    left, right = SCENE[0]._replace(column=0), SCENE[0]._replace(column=1, colour="green")
    assert caption((left, right)) == "a large red square to the left of a large green square"
    assert caption((right,)) == "a large green square at the top centre"


def test_patches_are_in_the_order_of_the_rows_and_know_their_place() -> None:
    found = patches(draw(SCENE))
    assert found.shape == (POSITIONS, 60)
    red = np.array([220, 30, 30], dtype=np.float32) / 255
    inside = found[5].reshape(-1)[:48].reshape(4, 4, 3)  # row 0, column 5: the right half of the square's top
    np.testing.assert_allclose(inside[1:, :3], np.broadcast_to(red, (3, 3, 3)), atol=1e-6)
    assert found[5, 48:].tolist() == [1, 0, 0, 0, 0, 0, *[0, 0, 0, 0, 0, 1]]


def test_a_picture_is_drawn_from_its_patches() -> None:
    features = patches(draw(SCENE))
    picture = SHAPES.picture(features.astype(np.float16))
    assert picture.shape == (48, 48, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_allclose(patches(picture), features, atol=1 / 255)


def test_no_picture_occurs_twice_and_the_same_options_give_the_same_files(tmp_path: Path) -> None:
    scenes = _scenes(3)
    drawn = [next(scenes) for _ in range(300)]
    assert len(set(drawn)) == 300
    first, second = (SHAPES.features(tmp_path / name) for name in ("a", "b"))
    assert all(first[split].read_bytes() == second[split].read_bytes() for split in ("train", "val", "test"))
    fewer = replace(SHAPES, train_size=20)
    assert lines(fewer.files(tmp_path / "a")["test"][1]) == lines(SHAPES.files(tmp_path / "a")["test"][1])
    form = r"a (small|large) \w+ (circle|square|triangle) (at the|above|to the left of) .*"
    assert all(re.fullmatch(form, line) for line in lines(SHAPES.files(tmp_path / "a")["train"][1]))


def test_batches_hold_the_vectors_of_their_captions(tmp_path: Path) -> None:
    prepared = prepare(SHAPES, TokenizerTrainer(vocab_size=120), tmp_path)
    features = np.load(SHAPES.features(tmp_path)["val"])
    captions = lines(SHAPES.files(tmp_path)["val"][1])
    batch = prepared.dataset("val").__getitems__([6, 2])
    assert batch.src_features is not None
    assert batch.src_features.shape == (2, POSITIONS + 1, 60)
    assert batch.src_tokens.tolist() == [[FIRST_TAG] * POSITIONS + [EOS]] * 2
    for row, index in enumerate((6, 2)):
        assert torch.equal(batch.src_features[row, :-1], torch.from_numpy(features[index].astype(np.float32)))
        assert prepared.tgt_tokenizer.decode(batch.tgt_tokens[row].tolist()) == captions[index]
    assert not batch.src_features[:, -1].any()


def own_files(folder: Path, captions: list[str], features: np.ndarray) -> FeatureFiles:
    np.save(folder / "x.npy", features)
    (folder / "x.en").write_text("".join(f"{line}\n" for line in captions))
    pair = [folder / "x.npy", folder / "x.en"]
    return FeatureFiles(train=pair, val=pair)


def test_pairs_that_are_dropped_take_their_vectors_with_them(tmp_path: Path) -> None:
    features = np.arange(3 * 2 * 2, dtype=np.float16).reshape(3, 2, 2)
    source = own_files(tmp_path, ["a dog", "", "a cat"], features)
    prepared = prepare(source, TokenizerTrainer(vocab_size=60), tmp_path / "cache")
    batch = prepared.dataset("train").__getitems__([0, 1])
    assert batch.src_features is not None
    assert batch.src_features[:, :-1].tolist() == features[[0, 2]].tolist()


def test_other_vectors_are_prepared_anew(tmp_path: Path) -> None:
    captions, features = ["a dog", "a cat"], np.ones((2, 2, 2), dtype=np.float32)
    trainer = TokenizerTrainer(vocab_size=60)
    first = prepare(own_files(tmp_path, captions, features), trainer, tmp_path / "cache").fingerprint
    assert prepare(own_files(tmp_path, captions, features), trainer, tmp_path / "cache").fingerprint == first
    assert prepare(own_files(tmp_path, captions, 2 * features), trainer, tmp_path / "cache").fingerprint != first


def test_files_that_do_not_go_together_are_errors(tmp_path: Path) -> None:
    features = np.ones((3, 2, 2), dtype=np.float32)
    with pytest.raises(CorpusError, match=r"x\.npy has 3 examples and .*x\.en has 2 lines"):
        own_files(tmp_path, ["a", "b"], features).files(tmp_path / "cache")
    features[1, 0, 0] = np.nan
    source = own_files(tmp_path, ["a b", "b c", "c d"], features)
    with pytest.raises(CorpusError, match=r"x\.npy: example 2 has NaN"):
        prepare(source, TokenizerTrainer(vocab_size=60), tmp_path / "cache")
    with pytest.raises(ConfigError, match=r"data\.val is 'x', expected a file of features and one of text"):
        replace(source, val="x")
    with pytest.raises(ConfigError, match=r"data\.reverse_source is for text"):
        replace(source, reverse_source=True)
    with pytest.raises(CorpusError, match=r"data\.test: no such file: .*gone\.npy"):
        replace(source, test=[tmp_path / "gone.npy", tmp_path / "x.en"]).files(tmp_path)
