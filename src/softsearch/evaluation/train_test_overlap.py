"""Test sentences that are in the training data, or nearly: what makes a test say less than it seems to."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

NEAR = 0.8  # Dice coefficient of single words and pairs of neighbours; about one word in ten differs
# Languages that write no spaces are compared by characters. Thai, Lao and Khmer are found when they are the same.
_HAN_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_HAN_KANA}]|[^\W{_HAN_KANA}]+")


class Overlap:
    """Compares training text, as it comes, with a test set; memory grows with the test set alone.

    Texts are compared without case, punctuation, spaces and differences of Unicode form. Two are near twins if the
    Dice coefficient of their sets of words and of pairs of neighbouring words is at least ``NEAR``.

    Args:
        sources: of the test set.
        references: of the test set, as many.
    """

    def __init__(self, sources: Sequence[str], references: Sequence[str]) -> None:
        self._sides = _Side(sources), _Side(references)
        self._pairs: set[int] = set()

    def add(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Looks at training pairs."""
        for source, target in zip(sources, targets, strict=True):
            same = [side.add(line) for side, line in zip(self._sides, (source, target), strict=True)]
            if same[0] and same[1]:
                self._pairs.update(same[0] & same[1])

    def counts(self) -> dict[str, int]:
        """How many test sentences were found, by kind; near twins are counted only where no equal is found."""
        src, tgt = self._sides
        return {
            "pair_exact": len(self._pairs),
            "source_exact": len(src.same),
            "target_exact": len(tgt.same),
            "source_near": len(src.near - src.same),
            "target_near": len(tgt.near - tgt.same),
        }


class _Side:
    """The test sentences of one language, by what a twin must have in common with them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.same: set[int] = set()
        self.near: set[int] = set()
        words = [_words(line) for line in lines]
        self._equal: dict[tuple[str, ...], set[int]] = {}
        for place, key in enumerate(words):
            if key:
                self._equal.setdefault(key, set()).add(place)
        self._keys = list(self._equal)
        self._features = [_features(key) for key in self._keys]
        self._rare = self._index()
        self._open = set(range(len(self._keys)))  # keys without a twin so far

    def add(self, line: str) -> set[int]:
        """Looks at a training sentence; returns the test sentences that are the same."""
        key = _words(line)
        same = self._equal.get(key, set())
        self.same |= same
        features = _features(key)
        candidates = {number for feature in features for number in self._rare.get(feature, ())}
        for number in candidates & self._open:
            test = self._features[number]
            if 2 * len(test & features) >= NEAR * (len(test) + len(features)):
                self._open.remove(number)
                self.near |= self._equal[self._keys[number]]
        return same

    def _index(self) -> dict[str, list[int]]:
        """The rarest features of each key: so many that no near twin lacks them all.

        With n features, i of them shared and m in the other set, 2i >= t(n + m) and m >= i make i >= tn / (2 - t).
        """
        frequency = Counter(feature for features in self._features for feature in features)
        index: dict[str, list[int]] = {}
        for number, features in enumerate(self._features):
            most_missing = int(len(features) * (1 - NEAR / (2 - NEAR)) + 1e-9)
            for feature in sorted(features, key=lambda f: (frequency[f], f))[: most_missing + 1]:
                index.setdefault(feature, []).append(number)
        return index


def _words(line: str) -> tuple[str, ...]:
    found = tuple(_WORDS.findall(unicodedata.normalize("NFKC", line).casefold()))
    return found or tuple(line.split())  # nothing but signs


def _features(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(words) | {f"{first} {second}" for first, second in pairwise(words)}
