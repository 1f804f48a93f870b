"""Several sources of one target in a line."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from softsearch.data.corpora.features import FeatureFiles
from softsearch.data.corpora.multi_source import MultiSource
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.tokenizer import Kind, TokenizerTrainer
from softsearch.text.vocabulary import FIRST_TAG

ENGLISH = ["a man runs", "two dogs", "", "a red car", "the man sits", "a dog and a man"]
FRENCH = ["un homme court", "deux chiens", "", "une auto vert", "", "un chien et un homme"]
GERMAN = ["ein mann rennt", "zwei hunde", "nichts", "ein rotes auto", "der mann sitzt", "ein hund und ein mann"]
JOINED = [
    "a man runs <and> un homme court",
    "two dogs <and> deux chiens",
    "",
    "a red car <and> une auto vert",
    "the man sits <and> ",
    "a dog and a man <and> un chien et un homme",
]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def source(tmp_path: Path) -> MultiSource:
    sides = {"en": ENGLISH, "fr": FRENCH, "de": GERMAN}
    files = {lang: write(tmp_path / f"text.{lang}", side) for lang, side in sides.items()}
    pairs = {lang: [files[lang], files["de"]] for lang in ("en", "fr")}
    parts = {lang: Parallel(train=pair, val=pair) for lang, pair in pairs.items()}
    return MultiSource(src_lang="en+fr", tgt_lang="de", sources=parts)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_lines_of_the_sources_are_joined_by_the_tag(source: MultiSource, tmp_path: Path) -> None:
    files = source.files(tmp_path / "cache")
    assert {split: [lines(path) for path in pair] for split, pair in files.items()} == {
        split: [JOINED, GERMAN] for split in ("train", "val")
    }
    assert source.files(tmp_path / "cache") == files


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("joint", [True, False])
def test_the_tag_is_the_first_piece(source: MultiSource, tmp_path: Path, kind: Kind, joint: bool) -> None:
    trainer = TokenizerTrainer(kind=kind, vocab_size=60 if kind != "word" else 40, joint=joint)
    prepared = prepare(source, trainer, tmp_path / "cache")
    assert prepared.src_tokenizer.encode("a <and> b").count(FIRST_TAG) == 1
    assert prepared.src_tokenizer.pieces([FIRST_TAG]) == ["\u2581<and>"]
    assert [int((src == FIRST_TAG).sum()) for src in map(prepared.dataset("val").src.__getitem__, range(6))] == [
        *(1, 1, 0, 1, 1, 1)
    ]


def test_a_reversed_line_has_its_sources_reversed(source: MultiSource, tmp_path: Path) -> None:
    prepared = prepare(replace(source, reverse_source=True), TokenizerTrainer(vocab_size=60), tmp_path / "cache")
    tokenizer = prepared.src_tokenizer
    ids = prepared.dataset("val").src[0].tolist()
    assert tokenizer.decode(ids) == JOINED[0]
    assert ids[-1] == tokenizer.encode("a")[0]


def test_targets_that_differ_are_an_error(source: MultiSource, tmp_path: Path) -> None:
    other = [GERMAN[0], "drei hunde", *GERMAN[2:]]
    french = source.sources["fr"]
    pair = [tmp_path / "text.fr", write(tmp_path / "other.de", other)]
    changed = replace(source, sources={"en": source.sources["en"], "fr": replace(french, train=pair)})
    with pytest.raises(CorpusError, match=r"text\.de and .*other\.de differ from line 2 on \(6 and 6 lines\)"):
        changed.files(tmp_path / "cache")
    pair = [write(tmp_path / "more.fr", [*FRENCH, "oui"]), write(tmp_path / "more.de", [*GERMAN, "ja"])]
    changed = replace(source, sources={"en": source.sources["en"], "fr": replace(french, train=pair)})
    with pytest.raises(CorpusError, match=r"differ from line 7 on \(6 and 7 lines\)"):
        changed.files(tmp_path / "cache")


def test_a_line_with_the_tag_is_an_error(source: MultiSource, tmp_path: Path) -> None:
    write(tmp_path / "text.fr", [*FRENCH[:3], "une auto <and> vert", *FRENCH[4:]])
    with pytest.raises(CorpusError, match=r"text\.fr:4 contains <and>"):
        source.files(tmp_path / "cache")


def test_feature_vectors_are_the_first_source(source: MultiSource, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((len(GERMAN), 2, 3), np.float16))
    pair = [tmp_path / "a.npy", tmp_path / "text.de"]
    pictures = FeatureFiles(train=pair, val=pair)
    joined = replace(source, sources={"image": pictures, **source.sources})
    assert joined.has_features
    assert lines(joined.files(tmp_path / "cache")["val"][0])[1:3] == [
        "<feature> <feature> <and> two dogs <and> deux chiens",
        "<feature> <feature> <and>  <and> ",
    ]
    prepared = prepare(joined, TokenizerTrainer(vocab_size=60), tmp_path / "cache")
    assert prepared.src_tokenizer.encode("<and> <feature>") == [FIRST_TAG, FIRST_TAG + 1]
    batch = prepared.dataset("val").__getitems__([0, 2])
    assert batch.src_features is not None
    assert batch.src_features.shape == (*batch.src_tokens.shape, 3)
    with pytest.raises(
        ConfigError, match=r"data\.sources\.image is feature vectors, expected them only in the first source"
    ):
        replace(source, sources={**source.sources, "image": pictures})
    with pytest.raises(ConfigError, match=r"data\.reverse_source is for text, but a source is feature vectors"):
        replace(joined, reverse_source=True)
    with pytest.raises(ConfigError, match=r"data\.pairs\.image is .*expected a source of one language pair"):
        Multilingual(src_lang="en", tgt_lang="de", pairs={"image": pictures})


def test_sources_that_do_not_go_together_are_errors(source: MultiSource) -> None:
    with pytest.raises(ConfigError, match=r"data\.sources has \['en'\], expected at least two named"):
        replace(source, sources={"en": source.sources["en"]})
    other_form = replace(source.sources["fr"], text_form="lc_tok")
    with pytest.raises(ConfigError, match=r"data\.sources have different text forms"):
        replace(source, sources={**source.sources, "fr": other_form})
    nested = Multilingual(src_lang="en", tgt_lang="de", pairs={"de": source.sources["en"]})
    with pytest.raises(ConfigError, match=r"data\.sources\.x is .*expected a source of one language pair"):
        replace(source, sources={**source.sources, "x": nested})
