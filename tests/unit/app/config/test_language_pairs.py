"""Pairs of files for several languages, as typed, become sources; files for a model with tags become a pair."""

import pytest

from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.language_pairs import DEFAULT_PAIRS, DEFAULT_SOURCES, with_pairs, with_tags
from softsearch.app.config.shorthands import as_meant
from softsearch.app.config.validation import build
from softsearch.data import Multilingual, MultiSource, Parallel, Table

NEW = "data.pairs.new=[a.en,a.fr]"


def source(*words: str) -> Multilingual:
    built = build(composed("train", *words).data)
    assert isinstance(built, Multilingual)
    return built


def test_default_pairs_are_those_of_the_config() -> None:
    assert tuple(composed("train", "data=multilingual").data.pairs) == DEFAULT_PAIRS
    assert tuple(composed("train", "data=multi_source").data.sources) == DEFAULT_SOURCES
    assert (CONFIGS / "data" / "multilingual.yaml").is_file()


@pytest.mark.parametrize(
    "choice", [(), ("data=multilingual",), ("data=multilingual", "~data.pairs.de", "~data.pairs.fr")]
)
def test_files_are_a_pair_without_the_default_pairs(choice: tuple[str, ...]) -> None:
    pairs = source(*choice, NEW, "data.pairs.old=[b.en,b.de]", "data.pairs.old.val=[c.en,c.de]", "data.val=20").pairs
    assert dict(pairs) == {
        "new": Parallel(train=["a.en", "a.fr"], val=20, src_lang="en", tgt_lang="fr"),
        "old": Parallel(train=["b.en", "b.de"], val=["c.en", "c.de"], src_lang="en", tgt_lang="de"),
    }


def test_files_are_sources_without_the_default_ones_unless_one_is_typed() -> None:
    own = ["data.sources.cs=[a.cs,a.de]", "data.sources.cs.val=[b.cs,b.de]"]
    built = build(composed("train", *own, "data.sources.en=[a.en,a.de]", "data.sources.en.val=[b.en,b.de]").data)
    assert isinstance(built, MultiSource)
    assert dict(built.sources) == {
        "cs": Parallel(train=["a.cs", "a.de"], val=["b.cs", "b.de"], src_lang="cs", tgt_lang="de"),
        "en": Parallel(train=["a.en", "a.de"], val=["b.en", "b.de"], src_lang="en", tgt_lang="de"),
    }
    added = build(composed("train", "data=multi_source", "data.sources.fr.root=x", *own).data)
    assert [*added.sources] == ["en", "fr", "cs"]


def test_a_default_pair_stays_if_it_is_typed_or_is_replaced_by_files() -> None:
    pairs = source("data=multilingual", NEW, "data.pairs.de.root=x", "data.pairs.fr=[c.en,c.fr]", "data.val=5").pairs
    assert [*pairs] == ["de", "new", "fr"]
    assert pairs["fr"] == Parallel(train=["c.en", "c.fr"], val=5, src_lang="en", tgt_lang="fr")
    assert [*source("data=multilingual", "data.pairs.de_en=[a.de,a.en]", "data.val=5").pairs] == ["de_en"]


def test_other_shorthands_and_sweeps_go_with_it() -> None:
    words = as_meant("train", ["-m", NEW, "data.val=10,20", "seed=1"])
    assert words[0] == "-m"
    assert "+data.pairs.new.val=10,20" in words
    assert with_pairs(words[1:]) == words[1:]  # once is enough
    assert with_pairs(["data=multilingual", "data.temperature=5"]) == ["data=multilingual", "data.temperature=5"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("data=parallel", "data.train=[a.en,a.de]", "data.val=10", "data.links=auto"),
            Parallel(train=["a.en", "a.de"], val=10, src_lang="en", tgt_lang="de"),
        ),
        (
            (
                "data=table",
                "data.train=a.tsv",
                "data.src=1",
                "data.tgt=2",
                "data.val=b.tsv",
                "data.src_lang=en",
                "data.tgt_lang=de",
            ),
            Table(train="a.tsv", val="b.tsv", src=1, tgt=2, src_lang="en", tgt_lang="de"),
        ),
    ],
)
def test_files_for_a_model_with_tags(words: tuple[str, ...], expected: object) -> None:
    typed = with_tags(["seed=3", *words])
    assert with_tags(typed) == typed
    built = source(*typed)
    assert (dict(built.pairs), built.source_tags) == ({"given": expected}, True)
    assert built.tags == ("<2de>", "<from:en>")
