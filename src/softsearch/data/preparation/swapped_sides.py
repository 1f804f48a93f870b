"""What two texts should not have in common: swapped sides."""

import logging
from collections.abc import Mapping

from softsearch.data.preparation.chunk_worker import CleanChunk, Corpus

_log = logging.getLogger(__name__)
Words = tuple[set[bytes], set[bytes]]  # of the source and of the target


def words_of(chunk: CleanChunk) -> Words:
    """The distinct words of both sides, as white space separates them."""
    return set(chunk.src.split()), set(chunk.tgt.split())


def warn_of_swapped(found: Mapping[Corpus, Words]) -> None:
    """Warns of corpora whose sides look like the other sides of the first training corpus.

    Both sides must have more words in common with its other side than with the same. Languages that write no spaces
    have few words to compare, and are not found out.

    Args:
        found: the words at the start of each corpus.
    """
    src, tgt = found["train", 0]
    for (split, number), (other_src, other_tgt) in found.items():
        crossed = len(other_src & tgt) > len(other_src & src) and len(other_tgt & src) > len(other_tgt & tgt)
        if crossed:
            _log.warning(
                "source and target of data.%s%s look swapped: their words are those of the other side of the training "
                "data; check the order of its files",
                split,
                f"[{number}]" if number else "",
            )
