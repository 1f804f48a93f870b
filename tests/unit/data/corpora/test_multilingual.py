"""Several corpora as one, told apart by tags."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from softsearch.data.corpora.joined import Joined
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.spellout import Spellout
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import ConfigError, CorpusError
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.train_test_overlap import find_overlap
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import Kind, TokenizerTrainer
from softsearch.text.vocabulary import UNK
from tests.support.pairs import write_corpus

PAIRS = {lang: Spellout(tgt_lang=lang, train_size=60, val_size=5, test_size=4) for lang in ("de", "fr")}


@pytest.fixture
def source() -> Multilingual:
    return Multilingual(src_lang="en", tgt_lang="de+fr", pairs=PAIRS)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_corpora_are_joined_and_sources_tagged(source: Multilingual, tmp_path: Path) -> None:
    files = source.files(tmp_path)
    assert set(files) == {"train", "val", "test"}
    assert files["train"] == source.train_files(tmp_path)[0]
    texts = [(pair, split, PAIRS) for split, pair in files.items() if split != "train"]
    for pair, (lang, part) in zip(source.train_files(tmp_path), PAIRS.items(), strict=True):
        texts.append((pair, "train", {lang: part}))
    for (src, tgt), split, joined in texts:
        parts = {lang: part.files(tmp_path)[split] for lang, part in joined.items()}
        assert lines(src) == [f"<2{lang}> {line}" for lang, part in parts.items() for line in lines(part[0])]
        assert lines(tgt) == [line for part in parts.values() for line in lines(part[1])]


def test_a_second_tag_names_the_language_of_the_source(tmp_path: Path) -> None:
    reverse = Spellout(src_lang="fr", tgt_lang="en", train_size=60, val_size=5, test_size=4)
    source = Multilingual(pairs={"de": PAIRS["de"], "back": reverse}, source_tags=True)
    assert source.tags == ("<2de>", "<from:en>", "<2en>", "<from:fr>")
    (src, _), parts = source.files(tmp_path)["val"], (PAIRS["de"], reverse)
    tags = ("<2de> <from:en>", "<2en> <from:fr>")
    files = [part.files(tmp_path)["val"][0] for part in parts]
    assert lines(src) == [f"{tag} {line}" for tag, file in zip(tags, files, strict=True) for line in lines(file)]
    prepared = prepare(source, TokenizerTrainer(vocab_size=600), tmp_path)
    last = prepared.dataset("val").src[9].tolist()
    assert prepared.src_tokenizer.pieces(last)[:2] == ["\u2581<2en>", "\u2581<from:fr>"]
    unnamed = replace(reverse, src_lang="en", tgt_lang="de"), Parallel(train=["a", "b"], val=["c", "d"], tgt_lang="de")
    with pytest.raises(ConfigError, match=r"data\.pairs\.y\.src_lang is '', expected a language's code"):
        Multilingual(pairs=dict(zip("xy", unnamed, strict=True)), source_tags=True)


def test_pairs_have_weights_or_a_temperature(source: Multilingual, tmp_path: Path) -> None:
    weighted = replace(source, weights=[1, 3])
    prepared = prepare(weighted, TokenizerTrainer(vocab_size=600), tmp_path)
    assert prepared.repeats == (1, 3)
    assert replace(source, temperature=2).repeats([100, 4]) == pytest.approx([1, 5])
    with pytest.raises(ConfigError, match=r"data.weights is \[1\], expected .* but data.pairs has 2"):
        replace(source, weights=[1])


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("joint", [True, False])
def test_a_tag_is_the_first_token_of_each_source(source: Multilingual, tmp_path: Path, kind: Kind, joint: bool) -> None:
    prepared = prepare(source, TokenizerTrainer(kind=kind, vocab_size=600, joint=joint), tmp_path)
    tags = {lang: prepared.src_tokenizer.encode(f"<2{lang}>")[0] for lang in ("de", "fr")}
    assert len(set(tags.values())) == 2
    assert UNK not in tags.values()
    for split in ("train", "val", "test"):
        src = prepared.dataset(split).src
        half = len(src) // 2
        firsts = [int(src[i][0]) for i in range(len(src))]
        assert firsts == [tags["de"]] * half + [tags["fr"]] * half


def test_a_reversed_source_ends_with_its_tag(source: Multilingual, tmp_path: Path) -> None:
    prepared = prepare(replace(source, reverse_source=True), TokenizerTrainer(vocab_size=600), tmp_path)
    src = prepared.dataset("test").src
    assert int(src[0][-1]) == prepared.src_tokenizer.encode("<2de>")[0]


def test_pairs_without_a_test_set_and_with_lines_to_drop(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    pairs = {
        "a": write_corpus(tmp_path / "a", train=3, val=2, test=2),
        "b": write_corpus(tmp_path / "b", train=3, val=2),
    }
    for split, path in (("train", pairs["b"].train[0]), ("val", pairs["b"].val[0])):
        Path(path).write_text("one\n\nthree\n" if split == "train" else "one\n\n")
    files = Multilingual(src_lang="en", tgt_lang="de", pairs=pairs).files(tmp_path / "cache")
    assert {split: [len(lines(path)) for path in pair] for split, pair in files.items()} == {
        "train": [3, 3],
        "val": [4, 4],
        "test": [2, 2],
    }


@pytest.mark.parametrize(
    ("pairs", "sizes"),
    [
        (("en de", "de en"), (100, 100)),  # both directions of one corpus
        (("en de", "de en"), (100, 0.1)),
        (("de en", "fr en", "en de"), (50, 100, 0.2)),  # several sources of one sentence
        (("en de", "de fr"), (100, 100)),  # a target that is another pair's source
    ],
)
def test_no_sentence_is_held_out_in_one_pair_and_trained_on_in_another(
    pairs: tuple[str, ...], sizes: tuple[float, ...], tmp_path: Path
) -> None:
    for lang in ("en", "de", "fr"):
        text = "".join(f"{lang} {number} {number % 7}\n" for number in range(1000))
        (tmp_path / f"all.{lang}").write_text(text, encoding="utf-8")
    parts = {
        pair.replace(" ", "_"): Parallel(train=[tmp_path / f"all.{lang}" for lang in pair.split()], val=size, test=10)
        for pair, size in zip(pairs, sizes, strict=True)
    }
    source = Multilingual(pairs=parts)
    for split in ("val", "test"):
        src, tgt = map(lines, source.files(tmp_path / "cache")[split])
        wanted = [10 if split == "test" else size if size > 1 else 1000 * size for size in sizes]
        assert len(src) == sum(wanted)
        text = HeldOutText(split, src, tgt, "plain", "en", "de")
        counts, warnings = find_overlap({"model": source}, None, text, tmp_path / "cache")
        assert {kind: count for kind, count in counts.items() if "near" not in kind} == dict.fromkeys(
            ("source and reference", "source", "reference"), 0
        )
        assert not any("are in the training data" in warning and not warning.startswith("0 ") for warning in warnings)


def test_the_same_content_is_joined_once_and_other_content_anew(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    source = Multilingual(src_lang="en", tgt_lang="de", pairs={"x": write_corpus(tmp_path / "a")})
    first = source.files(tmp_path)
    stamp = first["train"][0].stat().st_mtime_ns
    assert source.files(tmp_path) == first
    assert first["train"][0].stat().st_mtime_ns == stamp
    path = tmp_path / "a" / "train.en"
    path.write_text(path.read_text().replace("dog", "doggy"))
    assert source.files(tmp_path) != first


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    part = Parallel(train=["a.en", "a.de"], val=["a.en", "a.de"])
    with pytest.raises(CorpusError, match=r"data\.train: no such file: a\.en"):
        Multilingual(src_lang="en", tgt_lang="de", pairs={"x": part}).files(tmp_path)


LC_TOK = Parallel(train=["a.en", "a.de"], val=["a.en", "a.de"], text_form="lc_tok")
BAD_PAIRS = [
    (
        {"x": Joined(source=replace(LC_TOK, val=5, src_lang="en", tgt_lang="de"))},
        "data.pairs.x.source.val is 5, but all of data.pairs are divided together",
    ),
    ({}, "data.pairs is empty, expected pairs of files"),
    ({"x": "a.en"}, "data.pairs.x is 'a.en', expected a source of one language pair"),
    ({"x": Multilingual(src_lang="en", tgt_lang="de", pairs=PAIRS)}, "data.pairs.x is Multilingual"),
    (
        {"x": replace(LC_TOK, train=[LC_TOK.train, LC_TOK.train])},
        "data.pairs.x has several training corpora, wildcards or filters",
    ),
    (
        {"x": replace(LC_TOK, filters=Filters(duplicates=True))},
        "data.pairs.x has several training corpora, wildcards or filters",
    ),
    ({"x": replace(LC_TOK, reverse_source=True)}, "data.pairs.x has reverse_source or target_direction"),
    ({"x": replace(LC_TOK, tgt_lang="d e")}, "data.pairs.x.tgt_lang is 'd e', expected a language's code"),
    ({"x": replace(LC_TOK, tgt_lang="de,fr")}, "data.pairs.x.tgt_lang is 'de,fr'"),
    ({"x": LC_TOK, **PAIRS}, "data.pairs have different text forms, .*'x': 'lc_tok'"),
]


@pytest.mark.parametrize(("pairs", "message"), BAD_PAIRS)
def test_bad_pairs(pairs: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Multilingual(src_lang="en", tgt_lang="de", pairs=pairs)  # type: ignore[arg-type]


def test_the_form_of_the_text_is_that_of_the_pairs(source: Multilingual) -> None:
    assert source.text_form == "plain"
    assert Multilingual(src_lang="en", tgt_lang="de", pairs={"x": LC_TOK}).text_form == "lc_tok"
