"""Glossaries: what is read of files, and which terms are found in sentences."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.glossary import Glossary, open_glossary
from softsearch.search.terms import Term, joins


def found(rows: list[tuple[str, ...]], text: str) -> dict[str, int]:
    return {term.source: term.times for term in Glossary(rows).find(text)}


@pytest.mark.parametrize(
    ("rows", "text", "expected"),
    [
        ([("house", "Haus")], "House, a house and houses", {"House": 1, "house": 1}),
        ([("house", "Haus", "case")], "House, a house", {"house": 1}),
        ([("house", "Haus", "part")], "a boathouse", {"house": 1}),
        ([("red house", "x"), ("house", "y"), ("red", "z")], "red house house", {"red house": 1, "house": 1}),
        ([("a b", "x"), ("b c", "y")], "a b c", {"a b": 1}),
        ([("ab", "x", "part"), ("abc", "y", "part")], "abcab", {"abc": 1, "ab": 1}),
        ([("red  house", "x")], "a red\u00a0house", {"red house": 1}),
        ([("C++", "x"), ("don't", "y")], "C++ (don't)", {"C++": 1, "don't": 1}),
        ([("straße", "x")], "STRASSE", {"STRASSE": 1}),
        ([("東京", "Tokyo")], "私は東京に", {"東京": 1}),
        ([("it", "x"), ("it", "y", "case")], "It it", {"It": 1, "it": 1}),
        ([], "a", {}),
        ([("a", "x")], "", {}),
    ],
)
def test_the_longest_term_is_found_from_left_to_right(
    rows: list[tuple[str, ...]], text: str, expected: dict[str, int]
) -> None:
    assert found(rows, text) == expected


def test_a_file_has_kinds_and_alternatives(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("cat\tKatze| Katzen |\n\nDog\tHund\tcase\n")
    glossary = open_glossary(path)
    assert glossary.find("dog Dog cat") == [Term(("Hund",), 1, True, "Dog"), Term(("Katze", "Katzen"), 1, True, "cat")]
    assert open_glossary({"cat": "Kater"}).find("cats cat")[0].alternatives == ("Kater",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cat", "2 has 1 columns in 'cat'; expected a source term, a tab, its translation"),
        ("cat\tKatze\tcase\tx", "2 has 4 columns"),
        ("cat\tKatze\tfuzzy", "2 has the kind 'fuzzy'"),
        ("cat\t | ", "2 has an empty term or a control character"),
        ("\tKatze", "2 has an empty term or a control character"),
        ("cat\tKat\x07ze", "2 has an empty term or a control character"),
        ("First\tX", "2 has 'First' again with another translation; write all of them on one line, separated by |"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"first\tErste\n{line}\n")
    with pytest.raises(CorpusError) as error:
        open_glossary(path)
    assert f"{path}:{message}" in str(error.value)


def test_joiners_and_other_spaces_are_text() -> None:
    terms = {"Fi\u200cle": "Datei\u00a0neu", "the\u00a0house": "\U0001f468\u200d\U0001f469|Ak\u00adte"}
    (file, house) = open_glossary(terms).find("fi\u200cle the house")
    assert file.alternatives == ("Datei neu",)
    assert house.alternatives == ("\U0001f468\u200d\U0001f469", "Ak\u00adte")
    for text in ("\u200b", "a\u2028b", "a\ud800", "a\ue000"):
        with pytest.raises(CorpusError, match="has an empty term or a control character"):
            open_glossary({"file": text})


@pytest.mark.parametrize("wrong", [3, [("a", "b")], b"x", True])
def test_what_is_not_a_glossary_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"glossary is .* expected a file, translations by term"):
        open_glossary(wrong)


@pytest.mark.parametrize(("source", "target"), [("a", None), ("a", 3), ("a", ["b"]), (("a",), "b"), ("a", b"b")])
def test_terms_are_text(source: Any, target: Any) -> None:
    with pytest.raises(CorpusError, match="1 has something other than text in"):
        open_glossary({source: target})


def test_letters_join_and_words_of_unspaced_scripts_do_not() -> None:
    assert [joins(character) for character in "aß9_ก日タ-' "] == [True] * 4 + [False] * 6
