"""Glossaries: what is read of files, and which terms are found in sentences."""

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.glossary import Glossary, open_glossary
from softsearch.runtime.glossary_file import read_rows
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
        ([("caf\u00e9", "x")], "the cafe\u0301", {"caf\u00e9": 1}),
        ([("cafe\u0301", "x")], "the Caf\u00e9", {"Caf\u00e9": 1}),
        ([("cafe\u0301", "x", "case")], "\u200bcaf\u00e9", {"caf\u00e9": 1}),
        ([("driver's licence", "x")], "a driver\u2019s  licence", {"driver's licence": 1}),
        ([("l\u2019eau", "x")], "l'eau", {"l'eau": 1}),
        ([("API", "x", "part")], "the \uff21\uff30\uff29s", {"API": 1}),
        ([("traffic", "x")], "traf\u00adfic \u200btraffic\u200b", {"traffic": 2}),
        ([("-1", "x"), ("\u06a9\u06cc", "y")], "\u22121 \u0643\u0640\u064a", {"-1": 1, "\u06a9\u06cc": 1}),
        ([("x\u00b2", "x")], "x2 x\u00b2", {"x\u00b2": 1}),
        (
            [("\u0130zmir", "x"), ("stra\u00dfe", "y", "part")],
            "\u0130ZMIR Hauptstrasse",
            {"\u0130ZMIR": 1, "strasse": 1},
        ),
        ([("ss", "x", "part")], "Stra\u00dfe", {"\u00df": 1}),
        ([("s", "x", "part")], "\u00df", {}),
        ([("ab " * 40 + "c", "x"), ("ab " * 30 + "c", "y")], "ab " * 35 + "c", {"ab " * 30 + "c": 1}),
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
    "text",
    [
        '"Smith, John"\t"Schmidt, Johann"\n"say ""no"""\tnein\n5" disk\t"Disk" "Platte"\n',
        '\ufeffsource\ttarget\tkind\n"Smith, John"\tSchmidt, Johann\tword\nsay "no"\tnein\n5" disk\t"Disk" "Platte"\n',
        '# ours; 2026\n\nEN\tDE\nSmith, John\tSchmidt, Johann\n# a\tb\nsay "no"\tnein\n5" disk\t"Disk" "Platte"\n',
        'en_US;de_DE\n"Smith, John";Schmidt, Johann;word\n"say ""no""";nein\n5" disk;"""Disk"" ""Platte"""\n',
        'Term,Translation\n#\n"Smith, John","Schmidt, Johann"\n"say ""no""",nein\n"5"" disk","""Disk"" ""Platte"""\n',
    ],
)
def test_files_of_spreadsheets_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(text)
    terms = open_glossary(path).find('Smith, John say "no" 5" disk dog source en')
    expected = [("Smith, John", "Schmidt, Johann"), ('say "no"', "nein"), ('5" disk', '"Disk" "Platte"')]
    assert [(term.source, term.alternatives[0]) for term in terms] == expected


@pytest.mark.parametrize(
    "line", ["#1\tNummer eins", "source\tQuelle", "it\tes", "dog\tterm", "German\tDeutsch", "term\tterm"]
)
def test_a_first_term_is_no_header(tmp_path: Path, line: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"{line}\nlast\tletzte\n")
    assert len(open_glossary(path).find(f"{line.split()[0]} last")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog,Hund;K\u00f6ter\n", "1 has 1 columns in 'dog,Hund;K"),
        ("dog,Hund\ncat\n", "1 has 1 columns in 'dog,Hund'; expected a source term, a tab"),
        ("source,target,lang\ndog,Hund,EN\n", "2 has the kind 'EN'"),
        ('dog,"Hund\n', "1 has 1 columns"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "terms.csv"
    path.write_text(text)
    with pytest.raises(CorpusError) as error:
        open_glossary(path)
    assert f"{path}:{message}" in str(error.value)


def test_terms_that_differ_in_case_can_have_two_translations(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("may\td\u00fcrfen\nMay\tMai\n")
    with pytest.raises(CorpusError, match="end the lines of both in a file with a tab and case"):
        open_glossary(path)
    path.write_text("may\td\u00fcrfen\tcase\nMay\tMai\tcase\n")
    assert [term.alternatives[0] for term in open_glossary(path).find("May may")] == ["Mai", "d\u00fcrfen"]


def test_long_terms_cost_time_in_proportion_to_the_text() -> None:
    rows = [(" ".join(["abc"] * n) + " x", "y") for n in range(20, 2000, 20)]
    glossary, line = Glossary([*rows, ("word " * 1600, "z"), ("x" * 8000, "z", "part")]), "a wo rd word " * 4000
    began = process_time()
    assert not glossary.find(line)
    assert process_time() - began < 2


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


def test_a_glossary_of_omegat_is_read_as_it_is(tmp_path: Path) -> None:
    head = "# Glossary in tab-separated format -*- coding: utf-8 -*-\n"
    lines = "file\tDatei\tthe thing on a disk\n# a comment\n\nFile\tAkte\tof paper\npage\tSeite\nno translation\n"
    (tmp_path / "glossary.txt").write_text(head + lines)
    assert [*read_rows(tmp_path / "glossary.txt")] == [(), ["file", "Datei|Akte"], (), (), (), ["page", "Seite"], ()]
    glossary = open_glossary(tmp_path / "glossary.txt")
    assert [(term.source, term.alternatives) for term in glossary.find("a File page")] == [
        ("File", ("Datei", "Akte")),
        ("page", ("Seite",)),
    ]
    (tmp_path / "glossary.txt").write_text(f"{head}page\tSeite\n\x01\tx\n")
    with pytest.raises(CorpusError, match=r"glossary\.txt:3 has an empty term or a control character"):
        open_glossary(tmp_path / "glossary.txt")
    (tmp_path / "glossary.txt").write_text(lines)
    with pytest.raises(CorpusError, match=r"glossary\.txt:1 has the kind 'the thing on a disk'"):
        open_glossary(tmp_path / "glossary.txt")
