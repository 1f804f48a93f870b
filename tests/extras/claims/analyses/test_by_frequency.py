"""Recall of reference words by their number in the training text."""

from softsearch.extras.claims.measures import count_words, recall_by_frequency


def test_words_are_found_as_often_as_they_are_written() -> None:
    counts = count_words(["a a a", "a a b b", "c " * 1000])
    assert (counts["a"], counts["b"], counts["c"]) == (5, 2, 1000)
    ranges = recall_by_frequency(counts, ["a b", "new b c", ""], ["b a a", "b other b new", "c"])
    assert ranges == [("0", 2, 0.5), ("2-4", 3, 2 / 3), ("5-9", 2, 0.5), ("1000+", 1, 0.0)]
