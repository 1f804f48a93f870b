"""Dictionaries: which translation is taken, and files that are read as they were written or not at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import CorpusError
from softsearch.text.word_dictionary import Entry, best_translations, read_dictionary, write_dictionary

WORD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5)


def test_the_most_frequent_translation_is_taken_and_of_equals_the_rarer_word() -> None:
    counts = {("dog", "Hund"): 3, ("dog", "ein"): 1, ("poodle", "ein"): 2, ("poodle", "Pudel"): 2, ("a", "ein"): 9}
    assert best_translations(counts) == [Entry("a", "ein", 9), Entry("dog", "Hund", 3), Entry("poodle", "Pudel", 2)]


def test_the_order_of_counting_does_not_matter() -> None:
    counts = {("x", "b"): 1, ("x", "a"): 1, ("y", "c"): 1}
    assert best_translations(counts) == best_translations(dict(reversed(counts.items())))
    assert best_translations(counts)[0] == Entry("x", "a", 1)


@given(translations=st.dictionaries(WORD, WORD, max_size=6))
def test_what_is_written_is_read(translations: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("made") / "new" / "words.tsv"
    entries = [Entry(source, target, 2) for source, target in translations.items()]
    write_dictionary(path, [*entries, Entry("\u2603", "a snowman", 1)])
    assert read_dictionary(path) == {**translations, "\u2603": "a snowman"}
    assert [found.name for found in path.parent.iterdir()] == ["words.tsv"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dog", r":2 has 1 fields, expected 3"),
        ("dog\tHund", r":2 has 2 fields, expected 3"),
        ("dog\tHund\t3\t", r":2 has 4 fields, expected 3"),
        ("", r":2 has 1 fields"),
        ("hot dog\tHund\t3", r":2 has the source 'hot dog', expected one word"),
        (" dog\tHund\t3", r":2 has the source ' dog'"),
        ("\tHund\t3", r":2 has the source ''"),
        ("dog\t\t3", r":2 has the target ''"),
        ("dog\tHund \t3", r":2 has the target 'Hund '"),
        ("dog\tHund\t0", r":2 has the count '0', expected a whole number"),
        ("dog\tHund\t1.5", r":2 has the count '1\.5'"),
        ("dog\tHund\t\u00b2", r":2 has the count"),
        ("dog\tHund\t" + "9" * 5000, r":2 has the count"),
        ("cat\tKater\t3", r":2 repeats 'cat' from line 1"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "words.tsv").write_text(f"cat\tKatze\t5\n{line}\nend\tEnde\t1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"words\.tsv" + message):
        read_dictionary(tmp_path / "words.tsv")


def test_bytes_that_are_no_text_and_missing_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_bytes(b"cat\tKatze\t5\nd\xffg\tHund\t1\n")
    with pytest.raises(CorpusError, match=r"words\.tsv:2"):
        read_dictionary(tmp_path / "words.tsv")
    with pytest.raises(CorpusError, match=r"none\.tsv"):
        read_dictionary(tmp_path / "none.tsv")
