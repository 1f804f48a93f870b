"""A metric of the words that a translation has in common with its reference."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsearch.evaluation import Metric


class MyAttentionMetric(Metric):
    """F1 of words in any order, 0 to 100; of a test set that of all its words."""

    title = "word F1"
    limits = (0.0, 100.0)

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Words in common, words of the translation and of the reference, ``[sentences, 3]``."""
        rows = []
        for pair in zip(hypotheses, references, strict=True):
            words, expected = (Counter(text.split()) for text in pair)
            rows.append(((words & expected).total(), words.total(), expected.total()))
        return np.array(rows).reshape(-1, 3)

    def score(self, sums: NDArray[np.float64]) -> float:
        """The harmonic mean of precision and recall."""
        common, words, expected = sums
        return float(200 * common / max(words + expected, 1))
