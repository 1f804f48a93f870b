"""The cleaned pairs of a split, read from its parts without those that are dropped."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.selection import Marks, count_shared, select
from softsearch.data.preparation.text_parts import TextPart
from softsearch.text.filters import NO_FILTERS, Filters

_log = logging.getLogger(__name__)
Chunk = tuple[list[bytes], list[bytes], NDArray[np.int64]]  # source and target lines, and their numbers
Words = tuple[set[bytes], set[bytes]]  # distinct words of source and target


class CleanedText:
    """The pairs of a split, one corpus after another.

    Args:
        corpora: the parts of each corpus.
        filters: decide which repeated and unusual pairs are dropped.
        cache_dir: keeps what was decided.

    Attributes:
        parts: all parts.
        dropped: which pairs of them are dropped; None if no pair is.
        counts: findings in each corpus.
        identity: plain values that determine the pairs.
    """

    def __init__(self, corpora: Sequence[Sequence[TextPart]], cache_dir: Path, filters: Filters = NO_FILTERS) -> None:
        self.corpora, self.parts = corpora, [*chain.from_iterable(corpora)]
        self.cache_dir = cache_dir
        self.dropped, counts = select(corpora, filters, cache_dir)
        self.identity = [part.folder.name for part in self.parts], filters.duplicates, filters.max_length_z
        self.counts = [
            sum((part.counts for part in parts), Counter(own)) for parts, own in zip(corpora, counts, strict=True)
        ]

    def sizes(self) -> list[int]:
        """Returns the number of pairs left in each corpus."""
        return [
            sum(part.pairs for part in parts) - counts["repeated"] - counts["unusual"]
            for parts, counts in zip(self.corpora, self.counts, strict=True)
        ]

    def marks(self) -> Iterator[tuple[TextPart, Marks | None]]:
        """Yields each part with the marks of its dropped pairs."""
        begin = 0
        for part in self.parts:
            yield part, None if self.dropped is None else self.dropped[begin : begin + part.pairs]
            begin += part.pairs

    def chunks(self) -> Iterator[Chunk]:
        """Yields source lines, target lines and line numbers, a few thousand pairs at a time."""
        for part, marks in self.marks():
            begin, numbers = 0, part.lines
            for chunk in part.chunks():
                (src, tgt), rows = chunk.read(), slice(begin, begin + chunk.pairs)
                if marks is None:
                    yield src, tgt, numbers[rows]
                else:
                    kept = ~marks[rows]
                    yield list(compress(src, kept)), list(compress(tgt, kept)), numbers[rows][kept]
                begin += chunk.pairs

    def sample(self, side: Literal[0, 1], most: int) -> Iterator[str]:
        """Yields the lines of a side: all, or ``most`` at equal distances."""
        total = sum(self.sizes())
        for index, line in enumerate(line for chunk in self.chunks() for line in chunk[side]):
            if total <= most or index * most // total < (index + 1) * most // total:
                yield line.decode()

    def first_words(self) -> list[Words]:
        """Returns the words at the start of each corpus."""
        first = (next(parts[0].chunks()).read() for parts in self.corpora)
        return [(set(b"\n".join(src).split()), set(b"\n".join(tgt).split())) for src, tgt in first]

    def count_training_pairs(self, split: str, training: "CleanedText") -> int:
        """Returns the number of pairs that are also training pairs, including repeated ones, and warns about them."""
        shared = count_shared([part.hashes for part in training.parts], np.concatenate([p.hashes for p in self.parts]))
        if shared:
            _log.warning("%d of the %d pairs of %s are also in the training data", shared, sum(self.sizes()), split)
        return shared


def warn_of_swapped_sides(words: Mapping[str, Sequence[Words]]) -> None:
    """Warns about corpora whose sides each share more words with the other side of the training corpus.

    ``words`` are those at the start of each split's corpora. Languages without spaces have few words to compare and are
    not detected.
    """
    src, tgt = words["train"][0]
    for split, corpora in words.items():
        for number, (other_src, other_tgt) in enumerate(corpora):
            if len(other_src & tgt) > len(other_src & src) and len(other_tgt & src) > len(other_tgt & tgt):
                _log.warning(
                    "source and target of data.%s%s look swapped: their words match the other side of the "
                    "training data; check the order of its files",
                    split,
                    f"[{number}]" if number else "",
                )
