"""Reference words that translations have, by how often the training text has them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_LOWER_BOUNDS = (0, 1, 2, 5, 10, 100, 1000)  # times in the training text
_NAMES = ("0", "1", "2-4", "5-9", "10-99", "100-999", "1000+")


class FrequencyRange(NamedTuple):
    """The words of a range of frequencies."""

    name: str
    words: int  # of the references
    recall: float  # the share of them that the translations have


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word, between spaces, is in the lines."""
    return Counter(word for line in lines for word in line.split())


def recall_by_frequency(
    counts: Mapping[str, int], translations: Sequence[str], references: Sequence[str]
) -> list[FrequencyRange]:
    """The recall of words by range, rare ones first, without empty ranges; ``counts`` are those of the training text.

    Repeated words count once for each time that both sides have them; positions do not matter.
    """
    words, found = Counter[int](), Counter[int]()
    for translation, reference in zip(translations, references, strict=True):
        written = count_words([translation])
        for word, number in count_words([reference]).items():
            index = bisect_right(_LOWER_BOUNDS, counts.get(word, 0)) - 1
            words[index] += number
            found[index] += min(number, written[word])
    return [FrequencyRange(_NAMES[index], words[index], found[index] / words[index]) for index in sorted(words)]
