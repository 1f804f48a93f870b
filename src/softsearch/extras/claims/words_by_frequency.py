"""Recall and F1 of words, by their number in the training text."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.extras.claims.verdict import Row

_LOWER_BOUNDS = (0, 1, 2, 5, 10, 100, 1000)  # occurrences in the training text
_NAMES = ("0", "1", "2-4", "5-9", "10-99", "100-999", "1000+")


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Counts each word, separated by spaces, in the lines."""
    return Counter(word for line in lines for word in line.split())


def words_by_frequency(
    counts: Mapping[str, int], translations: Sequence[str], references: Sequence[str]
) -> Iterator[Row]:
    """Yields rows by range of frequencies, rare first, without empty ranges; ``counts`` are from the training text.

    ``words`` is the number of words in the references, ``sentences`` that of the references with any, ``recall`` the
    share of these words in the translations, and ``f1`` the harmonic mean of recall and precision, the share of written
    words that the references have. Repeated words count as often as they are on both sides; positions do not matter
    (the clipped unigram F1 of Sennrich et al. 2016, arXiv:1508.07909, section 4.1).
    """
    words, written, found = np.zeros((3, len(_NAMES), len(references)))
    for index, (translation, reference) in enumerate(zip(translations, references, strict=True)):
        ours, theirs = count_words([translation]), count_words([reference])
        for total, part in ((written, ours), (words, theirs), (found, ours & theirs)):
            for word, number in part.items():
                total[bisect_right(_LOWER_BOUNDS, counts.get(word, 0)) - 1, index] += number
    for name, all_words, all_written, all_found in zip(_NAMES, words, written, found, strict=True):
        if all_words.any():
            row = resampled_ratio("f1", 2 * all_found, all_words + all_written)
            row |= resampled_ratio("recall", all_found, all_words)  # with its number of sentences
            yield {"frequency": name, "words": int(all_words.sum()), **row}
