"""Recall and F1 of words by their number in the training text."""

import numpy as np
import pytest

from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.extras.claims.words_by_frequency import count_words, words_by_frequency

TRAIN, TRANSLATIONS, REFERENCES = (
    ["a a a", "a a b b", "c " * 1000],
    ["a b", "new b c", "x"],
    ["b a a", "b other b new", "c"],
)


def test_words_are_found_as_often_as_they_are_written() -> None:
    counts = count_words(TRAIN)
    assert (counts["a"], counts["b"], counts["c"]) == (5, 2, 1000)
    ranges = list(words_by_frequency(counts, TRANSLATIONS, REFERENCES))
    assert [(part["frequency"], part["words"], part["recall"]) for part in ranges] == [
        ("0", 2, 0.5),
        ("2-4", 3, 2 / 3),
        ("5-9", 2, 0.5),
        ("1000+", 1, 0.0),
    ]
    assert [part["f1"] for part in ranges] == [2 / 4, 4 / 5, 2 / 3, 0.0]  # written: new and x, b twice, a, c
    assert [part["sentences"] for part in ranges] == [1, 2, 1, 1]


def test_a_resample_has_the_recall_and_the_f1_of_its_sentences() -> None:
    counts = count_words(TRAIN)
    (row,) = (each for each in words_by_frequency(counts, TRANSLATIONS, REFERENCES) if each["frequency"] == "2-4")
    resampled = {name: [float(each) for each in row[f"{name}_resampled"].split()] for name in ("recall", "f1")}
    for number, drawn in enumerate(resample_counts(range(3))):
        sides = ([side[i] for i in np.repeat(range(3), drawn.astype(int))] for side in (TRANSLATIONS, REFERENCES))
        found = {each["frequency"]: each for each in words_by_frequency(counts, *sides)}
        for name, values in resampled.items():
            assert values[number] == pytest.approx(found["2-4"][name] if "2-4" in found else 0, rel=1e-4)
