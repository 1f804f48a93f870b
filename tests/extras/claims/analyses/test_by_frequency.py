"""Recall and F1 of words by their number in the training text."""

from softsearch.extras.claims.measures import count_words, words_by_frequency


def test_words_are_found_as_often_as_they_are_written() -> None:
    counts = count_words(["a a a", "a a b b", "c " * 1000])
    assert (counts["a"], counts["b"], counts["c"]) == (5, 2, 1000)
    ranges = words_by_frequency(counts, ["a b", "new b c", "x"], ["b a a", "b other b new", "c"])
    assert [(part.name, part.words, part.recall) for part in ranges] == [
        ("0", 2, 0.5),
        ("2-4", 3, 2 / 3),
        ("5-9", 2, 0.5),
        ("1000+", 1, 0.0),
    ]
    assert [part.f1 for part in ranges] == [2 / 4, 4 / 5, 2 / 3, 0.0]  # written: new and x, b twice, a, c
