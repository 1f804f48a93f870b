"""Test sentences in the training data."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.data.corpora.huggingface import HuggingFace
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.spellout import Spellout
from softsearch.data.preparation.clean import hash_sentences
from softsearch.data.preparation.prepare import prepare
from softsearch.data.preparation.sentence_hashes import sentence_hashes
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.train_test_overlap import NEAR_TWIN, Overlap, _features, find_overlap
from softsearch.text.filters import CleanPairs, Filters
from softsearch.text.same_text import words_of
from softsearch.text.tokenizer import TokenizerTrainer

TEXT = HeldOutText("t", ["a b c d", "x"], ["A B C D", "Y"], "plain", "en", "de")


def compared(sources: list[str], references: list[str], train: list[tuple[str, str]]) -> Overlap:
    overlap = Overlap(sources, references, near=True)
    lines = [[pair[side] for pair in train] for side in (0, 1)]
    overlap.add_hashes(hash_sentences(CleanPairs(*lines, [], Counter())))
    overlap.add_text(*lines)
    return overlap


TEN = "a b c d e f g h i j"  # 10 words and 9 pairs of neighbours


def near(test: str, train: str) -> bool:
    overlap = compared([test], ["other"], list(zip([train], ["thing"], strict=True)))
    return overlap.counts()["near twin of the source"] == 1


def test_the_same_text_is_found_whatever_its_case_signs_and_spaces() -> None:
    overlap = compared(
        ["A  man, here!", "a woman", "..."],
        ["Ein Mann", "eine Frau", "!"],
        list(zip(["<2de> a man here", "a woman", "a WOMAN ."], ["ein Hund", "Eine Frau.", "x"], strict=True)),
    )
    assert overlap.counts() == {
        "source and reference": 1,
        "source": 2,
        "reference": 1,
        "near twin of the source": 0,
        "near twin of the reference": 0,
    }


def test_both_directions_of_training_text_are_found() -> None:
    overlap = compared(
        ["a man", "one"],
        ["ein Mann", "eins"],
        list(zip(["<2en> <from:de> ein Mann", "uno"], ["A man.", "ONE"], strict=True)),
    )
    counts = overlap.counts()
    assert (counts["source and reference"], counts["source"], counts["reference"]) == (1, 2, 1)


def test_a_sentence_of_the_test_set_that_comes_twice_counts_twice() -> None:
    overlap = compared(["a b", "A b"], ["x", "y"], list(zip(["a b"], ["x"], strict=True)))
    assert (overlap.counts()["source"], overlap.counts()["source and reference"]) == (2, 1)


def test_near_twins_by_hand() -> None:
    assert near(TEN, "a b c d X f g h i j")  # 9 words and 7 pairs shared: 32 / 38 = 0.84
    assert near(TEN, "a b c d e f g h i X")  # 9 and 8: 34 / 38
    assert not near(TEN, "a b c X Y f g h i j")  # 8 and 6: 28 / 38 = 0.74
    assert not near(TEN, "a b X d e Y g h i j")  # 8 and 5
    assert near("a b c", "a b c d")  # 10 / 12
    assert not near("a b c", "c b a")  # 6 / 10: the order counts


def test_what_is_found_to_be_equal_is_no_near_twin() -> None:
    overlap = compared([TEN], ["x"], [(f"{TEN} k", "y")])
    assert overlap.counts()["near twin of the source"] == 1
    overlap = compared([TEN], ["x"], [(f"{TEN} k", "y"), (TEN, "y")])
    assert (overlap.counts()["near twin of the source"], overlap.counts()["source"]) == (0, 1)


def test_languages_without_spaces_are_compared_by_characters() -> None:
    assert near("我有一只黑色的小猫", "我有一只黑色的小狗")
    assert not near("我有一只黑色的小猫", "他们昨天去了北京大学")


SENTENCE = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


@given(st.lists(SENTENCE, min_size=1, max_size=6), st.lists(SENTENCE, max_size=6))
def test_the_index_loses_no_twin(test: list[str], train: list[str]) -> None:
    def twins(one: str, other: str) -> bool:
        a, b = _features(words_of(one)), _features(words_of(other))
        return bool(a) and one != other and 2 * len(a & b) >= NEAR_TWIN * (len(a) + len(b))

    overlap = compared(test, test, list(zip(train, train, strict=True)))
    expected = [t for t in test if t not in train and any(twins(t, other) for other in train)]
    assert overlap.counts()["near twin of the source"] == len(expected)
    assert overlap.counts()["source and reference"] == sum(bool(t) and t in train for t in test)


def corpus(folder: Path, src: str, tgt: str) -> Parallel:
    folder.mkdir()
    for name, content in (("t.en", src), ("t.de", tgt)):
        (folder / name).write_text(content, encoding="utf-8")
    pair = [str(folder / "t.en"), str(folder / "t.de")]
    return Parallel(train=pair, val=pair, filters=Filters(min_script=0.5))


def test_every_systems_data_is_read_and_bundles_are_named(tmp_path: Path) -> None:
    one = corpus(tmp_path / "one", "a b c d\nq\n", "A b c d\nq\n")
    two = corpus(tmp_path / "two", "x\n", "other\n")
    counts, warnings = find_overlap({"m1": one, "m2": one, "m3": two, "bundle": None}, None, TEXT, tmp_path)
    assert counts == {"source and reference": 1, "source": 2, "reference": 1}
    assert warnings[0] == (
        "2 of 2 test sentences are in the training data, 1 with the same translation. Scores may be too high"
    )
    assert "bundle: the training data was not searched" in warnings[1]
    assert len(warnings) == 2


def test_near_twins_are_found_where_they_are_asked_for(tmp_path: Path) -> None:
    data = corpus(tmp_path / "data", "a b c d e\nq\n", "Q b c d e\nX\n")
    counts, _ = find_overlap({"m": data}, None, TEXT, tmp_path, near=True)
    assert (counts["source"], counts["near twin of the source"], counts["near twin of the reference"]) == (1, 1, 1)
    assert len(find_overlap({"m": data}, None, TEXT, tmp_path)[0]) == 3


def test_text_that_was_prepared_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = corpus(tmp_path / "data", "a b c d\nq r\nq r\n" + "e f\n" * 200, "A b c d\nq r\nq r\n" + "g h\n" * 200)
    first = sentence_hashes(data, data.train_files(tmp_path), tmp_path / "other", lambda _: None)
    prepare(data, TokenizerTrainer(kind="char", vocab_size=20), tmp_path)
    monkeypatch.setattr("softsearch.data.preparation.text_parts.read_raw", None)
    assert find_overlap({"m": data}, None, TEXT, tmp_path)[0]["source and reference"] == 1
    kept = sentence_hashes(data, data.train_files(tmp_path), tmp_path, lambda _: None)
    assert [part.tolist() for part in kept] == [part.tolist() for part in first]
    assert [*map(len, kept)] == [203]


def test_data_that_is_gone_is_read_where_the_command_says_or_not_at_all(tmp_path: Path) -> None:
    here = corpus(tmp_path / "here", "x\n", "Y\n")
    pair = [str(tmp_path / "gone" / name) for name in ("t.en", "t.de")]
    moved = {"m": Parallel(train=pair, val=pair)}
    counts, warnings = find_overlap(moved, None, TEXT, tmp_path)
    assert counts == {}
    assert "m: the training data was not searched" in warnings[0]
    assert "gone" in warnings[0]
    counts, _ = find_overlap(moved, here, TEXT, tmp_path)
    assert counts["source and reference"] == 1
    assert find_overlap(moved, Spellout(), TEXT, tmp_path)[0] == {}


def test_data_that_needs_a_library_which_is_missing_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    source = HuggingFace(hub="a/b", revision=40 * "0", src="en", tgt="de")
    counts, [warning] = find_overlap({"m": source}, None, TEXT, tmp_path)
    assert counts == {}
    assert "m: the training data was not searched for test sentences: data=huggingface needs datasets" in warning


def test_no_overlap_is_no_warning(tmp_path: Path) -> None:
    clean = corpus(tmp_path / "data", "nothing of it\n", "nichts davon\n")
    counts, warnings = find_overlap({"m": clean}, None, TEXT, tmp_path)
    assert set(counts.values()) == {0}
    assert warnings == []


@pytest.mark.parametrize(("equal", "warns"), [(2, True), (1, False)])
def test_a_hundredth_of_equal_sentences_is_no_warning(equal: int, warns: bool, tmp_path: Path) -> None:
    lines = [f"word{number}" for number in range(100)]
    data = corpus(tmp_path / "data", *2 * ["\n".join(lines[:equal]) + "\n"])
    test = HeldOutText("test", lines, lines, "plain", "en", "de")
    counts, warnings = find_overlap({"m": data}, None, test, tmp_path)
    assert counts["source"] == equal
    assert bool(warnings) == warns
