"""Scores by the length of the source."""

import pytest

from softsearch.evaluation.by_length import length_ranges, score_by_length
from softsearch.evaluation.metrics import BLEU, LengthRatio


def words(count: int) -> str:
    return " ".join(["w"] * count)


def test_each_sentence_is_in_one_range() -> None:
    lengths = [6, 1, 5, 51, 50, 21, 10, 500, 0]
    assert length_ranges([words(n) for n in lengths]) == {
        "01-05": [1, 2, 8],
        "06-10": [0, 6],
        "21-30": [5],
        "41-50": [4],
        "51+": [3, 7],
    }


def test_ranges_are_named_in_their_order_and_leave_no_gap() -> None:
    found = length_ranges([words(n) for n in range(1, 61)])
    assert list(found) == ["01-05", "06-10", "11-15", "16-20", "21-30", "31-40", "41-50", "51+"]
    assert list(found) == sorted(found)
    for name, places in found.items():
        first, _, last = name.rstrip("+").partition("-")
        assert [places[0] + 1, places[-1] + 1] == [int(first), int(last or 60)]


@pytest.mark.parametrize("letter", "ทລខမབᨠ日ひ汉")
def test_scripts_without_spaces_are_measured_in_characters(letter: str) -> None:
    sources = [letter * 15, f"{letter * 8} {letter * 8}", letter * 151, "two words"]
    assert length_ranges(sources) == {"001-015": [0, 3], "016-030": [1], "151+": [2]}


def test_each_range_is_scored_by_itself() -> None:
    sources = [words(3), words(8), words(4)]
    references = ["a b c d", "e f g h", "i j k l"]
    hypotheses = ["a b c d", "e f x", "i j k l"]
    bleu = BLEU(tokenize="none")
    table = bleu.table(hypotheses, references)
    short, longer = score_by_length(sources, bleu, table, LengthRatio(), table[:, :2])
    assert (short.name, short.sentences, short.score.value) == ("01-05", 2, pytest.approx(100))
    assert (short.score.low, short.score.high, short.length_ratio) == pytest.approx((100, 100, 1))
    assert (longer.name, longer.sentences, longer.length_ratio) == ("06-10", 1, 0.75)
    assert longer.score.value == pytest.approx(bleu.corpus_score(hypotheses[1:2], references[1:2]))
