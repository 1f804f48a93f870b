"""Validation and test pairs that are split off the training text: no sentence of theirs stays, and reproducibly."""

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.validation import check
from softsearch.data.corpora import groups as groups_module
from softsearch.data.corpora.groups import PairGroups
from softsearch.data.corpora.held_out import choose
from softsearch.data.corpora.multi_source import MultiSource
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.table import Table
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import TokenizerTrainer

Pair = tuple[str, str]


def pairs(path: tuple[Path, Path]) -> list[Pair]:
    return list(zip(*map(read_lines, path), strict=True))


def corpus(folder: Path, name: str, lines: list[Pair]) -> list[Path]:
    files = [folder / f"{name}.en", folder / f"{name}.de"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    return files


LINES = [(f"source {number % 70}", f"ziel {number}") for number in range(100)]  # 30 sources come twice


def divided(tmp_path: Path, **options: Any) -> dict[str, list[Pair]]:
    files = corpus(tmp_path, "train", LINES)
    return {split: pairs(pair) for split, pair in Parallel(train=files, **options).files(tmp_path / "cache").items()}


@pytest.mark.parametrize(("size", "wanted"), [(20, 20), (1, 1), (0.05, 5), (0.2, 20), (0.001, 1)])
def test_as_many_pairs_as_asked_for_and_no_source_on_both_sides(tmp_path: Path, size: int | float, wanted: int) -> None:
    splits = divided(tmp_path, val=size)
    assert len(splits["val"]) == wanted
    assert Counter(splits["train"] + splits["val"]) == Counter(LINES)
    assert {src for src, _ in splits["train"]}.isdisjoint(src for src, _ in splits["val"])
    assert splits["train"] == [pair for pair in LINES if pair in splits["train"]]  # the order stays


def test_a_test_set_leaves_validation_as_it_is_and_nothing_is_in_two(tmp_path: Path) -> None:
    alone, both = divided(tmp_path, val=10), divided(tmp_path, val=10, test=0.1)
    assert both["val"] == alone["val"]
    assert Counter(chain(*both.values())) == Counter(LINES)
    sources = [{src for src, _ in both[split]} for split in ("train", "val", "test")]
    assert sum(map(len, sources)) == len(set.union(*sources)) == 70
    files = corpus(tmp_path, "val", LINES[:3])
    assert divided(tmp_path, val=files, test=10)["test"] == alone["val"]


def test_the_choice_follows_the_text_alone(tmp_path: Path) -> None:
    first = divided(tmp_path, val=10)
    assert divided(tmp_path / ".", val=10) == first
    (tmp_path / "other").mkdir()
    reordered = corpus(tmp_path / "other", "x", LINES[::-1])
    other = Parallel(train=reordered, val=10).files(tmp_path / "cache")
    assert Counter(pairs(other["val"])) == Counter(first["val"])


def test_several_corpora_and_a_table(tmp_path: Path) -> None:
    corpora = [corpus(tmp_path, "a", LINES[:50]), corpus(tmp_path, "b", LINES[50:])]
    source = Parallel(train=corpora, val=20)
    files, train = source.files(tmp_path / "cache"), source.train_files(tmp_path / "cache")
    whole = divided(tmp_path, val=20)
    assert pairs(files["val"]) == whole["val"]
    assert files["train"] == train[0]
    assert pairs(train[0]) + pairs(train[1]) == whole["train"]
    (tmp_path / "x.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in LINES), encoding="utf-8")
    table = Table(train=tmp_path / "x.tsv", val=20, src=1, tgt=2).files(tmp_path / "cache")
    assert [pairs(table[split]) for split in ("train", "val")] == [whole["train"], whole["val"]]


def test_only_what_training_would_keep_is_held_out(tmp_path: Path) -> None:
    odd = [("", "leer"), ("same", "same"), ("  ", "x"), ("\u00e4" * 20_000, "lang")]
    files = corpus(tmp_path, "train", odd * 20 + LINES)
    source = Parallel(train=files, val=90, filters=Filters(identical=True))
    splits = {split: pairs(pair) for split, pair in source.files(tmp_path / "cache").items()}
    assert len(splits["val"]) == 90
    assert set(splits["val"]) <= set(LINES)
    assert len(splits["train"]) == 90
    files[0].write_bytes(b"\xef\xbb\xbf" + files[0].read_bytes())
    marked = {split: pairs(pair) for split, pair in source.files(tmp_path / "cache").items()}
    assert marked == splits


def test_prepared_data_follows_the_size(tmp_path: Path) -> None:
    files = corpus(tmp_path, "train", LINES)
    trainer = TokenizerTrainer(kind="char", vocab_size=60)
    first, again, other = (
        prepare(Parallel(train=files, val=size), trainer, tmp_path / "cache") for size in (10, 10, 11)
    )
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert (len(first.dataset("train")), len(first.dataset("val"))) == (90, 10)
    assert first.report()["also_in_training"] == {"val": 0}


@pytest.mark.parametrize("size", [100, 5000, 0.9999])
def test_too_few_pairs(tmp_path: Path, size: int | float) -> None:
    with pytest.raises(CorpusError, match=rf"data.val={size} cannot be split off: .* 100 pairs .* 70 groups"):
        divided(tmp_path, val=size)


def places_of(folder: Path, hashes: NDArray[np.uint64], numbers: list[int], sizes: dict[str, Any]) -> list[int]:
    return choose(PairGroups(hashes, numbers, folder), sizes).tolist()


def test_groups_share_no_sentence_and_those_that_do_not_fit_are_left_in_training(tmp_path: Path) -> None:
    hashes = np.array([[1, 2], [3, 2], [4, 3], [0, 0], [5, 6], [7, 9], [9, 7], [8, 10]], np.uint64)
    groups = [[0, 1, 2], [4], [5, 6], [7]]
    for size in (1, 2, 3):
        places = places_of(tmp_path, hashes, [8], {"data": {"val": size}})
        assert size - 1 <= sum(places) <= size
        assert all(len({places[pair] for pair in group}) == 1 for group in groups)
        assert not (size < 3 and places[0])
    more = np.concatenate([hashes, np.random.default_rng(1).integers(20, 2**40, (20, 2)).astype(np.uint64)])
    both = places_of(tmp_path, more, [28], {"data": {"val": 6, "test": 7}})
    assert (both.count(1), both.count(2), both[3]) == (6, 7, 0)


def test_the_choice_does_not_depend_on_how_much_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    hashes = rng.integers(1, 2**63, 150).astype(np.uint64)[rng.integers(0, 150, (120, 2))] | np.uint64(1)
    hashes[::9] = 0
    sizes = {"a": {"val": 9, "test": 0.1}, "b": {"val": 0.2}}
    expected = places_of(tmp_path, hashes, [70, 50], sizes)
    assert {0, 1, 2} <= {*expected}
    for chunk in (1, 7, 100):
        monkeypatch.setattr(groups_module, "CHUNK", chunk)
        assert places_of(tmp_path, hashes, [70, 50], sizes) == expected


def test_pairs_of_a_source_that_holds_out_none_are_left_out_unless_they_are_many(tmp_path: Path) -> None:
    hashes = np.array([[1, 2], [3, 4], [2, 1], [4, 3], *[[4, 5]] * 5], np.uint64)
    assert places_of(tmp_path, hashes, [2, 7], {"a": {"val": 1}, "b": {}}) == [1, 0, 3, *[0] * 6]
    with pytest.raises(
        CorpusError, match=r"b\.val=7 cannot be split off: the training text has 7 pairs with text, in 2 "
    ):
        places_of(tmp_path, hashes, [2, 7], {"a": {}, "b": {"val": 7}})


FORMS = [
    ("caf\u00e9 au lait", "Kaffee"),
    ("cafe\u0301  au lait", "Milchkaffee"),
    ("Caf\u00e9 au\u00a0la\u00adit.", "Cafe"),
]


def test_forms_of_a_sentence_are_one(tmp_path: Path) -> None:
    """Unicode's forms, spaces, invisible characters, case and punctuation."""
    found = set()
    for number in range(8):
        (folder := tmp_path / str(number)).mkdir()
        forms = [(f"{number} {src}", tgt) for src, tgt in FORMS]
        splits = Parallel(train=corpus(folder, "train", [*forms, ("one", "eins")]), val=3).files(tmp_path / "cache")
        held_out = [pair for pair in pairs(splits["val"]) if pair in forms]
        assert held_out in ([], forms)
        found.add(len(held_out))
    assert found == {0, 3}


def test_a_corpus_and_its_reverse_hold_out_the_same(tmp_path: Path) -> None:
    forward, back = divided(tmp_path, val=10), Parallel(train=corpus(tmp_path, "train", LINES)[::-1], val=10)
    assert pairs(back.files(tmp_path / "cache")["val"]) == [(tgt, src) for src, tgt in forward["val"]]


@pytest.mark.parametrize("value", [0, -1, 1.5, 0.0, True])
def test_what_is_no_size(value: object) -> None:
    node = {"_target_": name_of(Parallel), "train": ["a.en", "a.de"], "val": value}
    with pytest.raises(ConfigError, match=re.escape(f"data.val is {value!r}")):
        check(node, "data")
    check({**node, "val": 2000, "test": 0.05}, "data")


def test_sources_side_by_side_need_files() -> None:
    parts = {name: Parallel(train=[f"a.{name}", "a.de"], val=10) for name in ("en", "fr")}
    with pytest.raises(ConfigError, match=r"data\.sources\.en\.val is 10, but all sources hold out the same lines"):
        MultiSource(sources=parts)
