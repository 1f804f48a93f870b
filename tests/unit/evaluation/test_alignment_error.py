"""Alignment error rates, computed by hand, and gold files that are not what they should be."""

from pathlib import Path

import pytest

from softsearch.errors import CorpusError
from softsearch.evaluation.alignment_error import Gold, alignment_error_rate, read_gold

SURE, POSSIBLE = {(0, 0), (1, 2)}, {(0, 0), (1, 2), (1, 1)}


def gold_file(folder: Path, text: str) -> Path:
    path = folder / "gold"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(0, 0), (1, 1), (2, 2)], 1 - (1 + 2) / (3 + 2)),  # 0.4
        ([(0, 0), (1, 2)], 0),
        ([(0, 0), (1, 2), (1, 1)], 0),  # what is possible costs nothing
        ([(0, 0)], 1 - 2 / 3),  # what is sure and missing does
        ([(0, 1)], 1),
        ([], 1),
        ([(0, 0), (0, 0), (1, 2)], 0),  # a link is there or is not
    ],
)
def test_one_sentence_by_hand(found: list[tuple[int, int]], expected: float) -> None:
    assert alignment_error_rate([found], [Gold(SURE, POSSIBLE)]) == pytest.approx(expected)


def test_sentences_are_counted_together() -> None:
    other = Gold({(0, 0)}, {(0, 0), (0, 1)})
    # |A and S| = 2 + 0, |A and P| = 2 + 1, |A| = 2 + 2, |S| = 2 + 1
    found = [[(0, 0), (1, 2)], [(0, 1), (3, 3)]]
    assert alignment_error_rate(found, [Gold(SURE, POSSIBLE), other]) == pytest.approx(1 - 5 / 7)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(CorpusError, match="have any links"):
        alignment_error_rate([[]], [Gold(set(), set())])


def test_pharaoh_from_zero_and_from_one(tmp_path: Path) -> None:
    path = gold_file(tmp_path, "0-0 1?1 1-2\n\n0-1\n")
    expected = [Gold(SURE, POSSIBLE), Gold(set(), set()), Gold({(0, 1)}, {(0, 1)})]
    assert read_gold(path, [(2, 3), (1, 1), (2, 2)], first=0) == expected
    path = gold_file(tmp_path, "1-1 2?2 2-3\n")
    assert read_gold(path, [(2, 3)], first=1) == expected[:1]


def test_naacl_with_null_links_confidences_and_a_sentence_without_links(tmp_path: Path) -> None:
    path = gold_file(tmp_path, "0001 1 1 S\n0001 2 2 P 0.5\n0001 2 3\n0001 0 2 S\n1 1 0\n0003 1 2 S 1\n")
    expected = [Gold(SURE, POSSIBLE), Gold(set(), set()), Gold({(0, 1)}, {(0, 1)})]
    assert read_gold(path, [(2, 3), (1, 1), (2, 2)], first=0) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0-0 1;1\n", ":2 has '1;1'"),
        ("0-0\n0-3\n", ":2 has the link '0-3', but the source has 2 words and the target 3"),
        ("1-1\n2-3\n", "gold_first=1 says that words are numbered from 1"),
        ("0-0\n", "has 1 lines, but the test set has 2"),
        ("1 1 1 S\n1 2\n", ":2 is '1 2'"),
        ("1 1 1 X\n", "begins with '1 1 1 X'"),
        ("1 1 1 S\n3 1 1 S\n", ":2 is about sentence 3, expected 1 to 2"),
        ("1 1 1 S\n2 3 1 S\n", ":2 has the link '2 3 1 S'"),
        ("the cat\n", "begins with 'the cat'"),
        ("\n\n", "begins with ''"),
        ("0-" + "1" * 5000, "begins with '0-111"),
        ("1 1 1\n1 1 " + "1" * 5000, ":2 is '1 1 111"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = gold_file(tmp_path, text)
    with pytest.raises(CorpusError) as error:
        read_gold(path, [(2, 3), (2, 3)], first=0)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_numbers_from_one_read_as_from_zero_say_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="gold_first=0"):
        read_gold(gold_file(tmp_path, "0-0\n"), [(2, 3)], first=1)
