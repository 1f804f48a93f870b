"""Overlap of the test set with the training data: equal sentences, by their hashes, and near-duplicates."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.preparation.clean import SentenceHashes
from softsearch.data.preparation.selection import HASH_CHUNK
from softsearch.data.preparation.sentence_hashes import sentence_hashes
from softsearch.errors import SoftsearchError
from softsearch.evaluation.measure import ProgressBar
from softsearch.evaluation.test_set import HeldOutText
from softsearch.text.corpus import read_raw
from softsearch.text.filters import Cleaner
from softsearch.text.joint_sources import split_sources
from softsearch.text.same_text import Words, hash_of, words_of

WARNING_SHARES = {
    "near twin of the source": 0.05,
    "near twin of the reference": 0.05,
}  # shares above which a warning is given; otherwise 1 %
NEAR_TWIN = 0.8  # Dice coefficient of words and word bigrams; about one word in ten differs


def find_overlap(
    sources: Mapping[str, ParallelSource | None],
    substitute: ParallelSource | None,
    test: HeldOutText,
    cache_dir: Path,
    *,
    near: bool = False,
    progress: ProgressBar = lambda _name, _total: nullcontext(lambda _done: None),
) -> tuple[dict[str, int], list[str]]:
    """Looks for the test sentences in the training data of systems, given by name (None for a bundle).

    ``substitute`` is data of the same kind, read if the files of a system are missing. With ``near`` all training text
    is also read again, for near-duplicates.

    Returns:
        Counts by kind, empty if nothing could be read, and warnings of large overlap and of unchecked data.
    """
    overlap, warnings, read = Overlap(test.sources, test.references, near=near), [], []
    for first, source in sources.items():
        names = [name for name, other in sources.items() if other == source]
        if first != names[0]:  # equal data is read once
            continue
        not_checked = f"{', '.join(names)}: the training data was not searched for test sentences"
        if source is None:
            warnings.append(f"{not_checked}, because a bundle does not contain it")
            continue
        try:
            _add_training_text(overlap, source, substitute, cache_dir, progress)
            read.append(source)
        except SoftsearchError as error:  # also if a library is missing
            warnings.append(f"{not_checked}: {error}")
    counts = overlap.counts() if read else {}
    total = len(test.sources)
    if any(count > WARNING_SHARES.get(kind, 0.01) * total for kind, count in counts.items()):
        warnings.insert(0, overlap.summary())
    return counts, warnings


def _add_training_text(
    overlap: "Overlap",
    source: ParallelSource,
    substitute: ParallelSource | None,
    cache_dir: Path,
    progress: ProgressBar,
) -> None:
    try:
        files = source.train_files(cache_dir)
    except SoftsearchError:
        if type(substitute) is not type(source):
            raise
        source = substitute
        files = source.train_files(cache_dir)
    with progress("hashing training text", None) as advance:
        hashes = sentence_hashes(source, files, cache_dir, advance)
    for part in hashes:
        for begin in range(0, len(part), HASH_CHUNK):
            overlap.add_hashes(part[begin : begin + HASH_CHUNK])
    if not overlap.near:
        return
    with progress("near-duplicates in training text", sum(map(len, hashes))) as advance:
        for src, tgt in files:
            clean = Cleaner(src=src, tgt=tgt, filters=source.filters, letters=source.letters())
            for chunk in map(clean, read_raw(src, tgt)):
                overlap.add_text(chunk.src, chunk.tgt)
                advance(len(chunk.src))


class Overlap:
    """Compares a stream of training text with a test set; memory grows only with the test set.

    Both sides of the training text are compared with both sides of the test set, because a model of both directions has
    seen a reference that was a source. ``softsearch.text.same_text`` says which texts are the same; two are near
    twins if the Dice coefficient of their sets of words and bigrams is at least ``NEAR_TWIN``.
    """

    def __init__(self, sources: Sequence[str], references: Sequence[str], *, near: bool = False) -> None:
        self._sides = _Side(sources), _Side(references)
        self._pairs: set[int] = set()
        self.total, self.near = len(sources), near

    def add_hashes(self, hashes: SentenceHashes) -> None:
        """Looks up training pairs, all of which are to be given, to find equal texts."""
        found = np.any([side.has(hashes) for side in self._sides], axis=(0, 2))
        for pair in {*map(tuple, hashes[found].tolist())}:
            src, tgt = ([side.find(text) for side in self._sides] for text in pair)
            self._pairs |= (src[0] & tgt[1]) | (tgt[0] & src[1])

    def add_text(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Compares training pairs, all of which are to be given, to find near twins."""
        for lines in (sources, targets):
            for line in lines:
                features = _features(words_of(line))
                for side in self._sides:
                    side.compare(features)

    def counts(self) -> dict[str, int]:
        """Returns the number of test sentences found, by kind; near twins only of sentences not found otherwise."""
        src, tgt = self._sides
        counts = {"source and reference": len(self._pairs), "source": len(src.same), "reference": len(tgt.same)}
        if self.near:
            counts["near twin of the source"] = len(src.near - src.same)
            counts["near twin of the reference"] = len(tgt.near - tgt.same)
        return counts

    def summary(self) -> str:
        """Describes the test sentences found on either side."""
        src, tgt = self._sides
        same = src.same | tgt.same
        near = len((src.near | tgt.near) - same)
        text = (
            f"{len(same):,} of {self.total:,} test sentences {'is' if len(same) == 1 else 'are'} in the training data"
        )
        text += f", {len(self._pairs):,} with the same translation" if self._pairs else ""
        text += f"; {near:,} {'has' if near == 1 else 'have'} a near-duplicate there" if near else ""
        return f"{text}. Scores may be too high"


class _Side:
    """The test sentences of one language, indexed by words."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.same: set[int] = set()
        self.near: set[int] = set()
        self._equal: dict[Words, set[int]] = {}
        self._by_hash: dict[int, set[int]] = {}
        for index, line in enumerate(lines):
            for text in {line, *split_sources(line)}:  # models may be trained on any one of several sources
                if key := words_of(text):
                    self._equal.setdefault(key, set()).add(index)
                    self._by_hash[int.from_bytes(hash_of(text), "little")] = self._equal[key]
        self._hashes = np.array(sorted(self._by_hash), np.uint64)
        self._features = {key: _features(key) for key in self._equal}
        self._open = set(self._equal)  # keys without a twin so far
        # Keys by their rarest features, enough of them that every near twin has one. With n features, i of them shared
        # and m in the other set, 2i >= t(n + m) and m >= i imply i >= tn / (2 - t).
        frequency = Counter(feature for features in self._features.values() for feature in features)
        self._rare: dict[str, list[Words]] = {}
        for key, features in self._features.items():
            most_missing = int(len(features) * (1 - NEAR_TWIN / (2 - NEAR_TWIN)) + 1e-9)
            for feature in sorted(features, key=lambda f: (frequency[f], f))[: most_missing + 1]:
                self._rare.setdefault(feature, []).append(key)

    def has(self, hashes: SentenceHashes) -> NDArray[np.bool_]:
        """Returns which texts are equal to a test sentence, by their hashes."""
        if not len(self._hashes):
            return np.zeros(hashes.shape, np.bool_)
        places = np.searchsorted(self._hashes[1:], hashes, side="right")
        return np.asarray(self._hashes[places] == hashes)

    def find(self, text: int) -> set[int]:
        """Returns the indices of the test sentences with a hash."""
        same = self._by_hash.get(text, set())
        self.same |= same
        return same

    def compare(self, features: frozenset[str]) -> None:
        """Compares a training sentence, to find near twins."""
        candidates = {other for feature in features for other in self._rare.get(feature, ())}
        for other in candidates & self._open:
            test = self._features[other]
            if 2 * len(test & features) >= NEAR_TWIN * (len(test) + len(features)):
                self._open.remove(other)
                self.near |= self._equal[other]


def _features(words: Words) -> frozenset[str]:
    return frozenset(words) | {f"{first} {second}" for first, second in pairwise(words)}
