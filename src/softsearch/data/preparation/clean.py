"""Cleaning of a chunk of text, in any process: the text that is kept, compressed, and what is known of it."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.parallelism import Mismatch, mismatches
from softsearch.text.corpus import RawPairs
from softsearch.text.filters import Cleaner, CleanPairs
from softsearch.text.same_text import hash_of

_MAX_LENGTH = 65_535  # training text has at most 10,000 characters
_LEVEL = 1  # of compression: text to 2/5 of its size, in a twentieth of the time of cleaning

Place = tuple[int, int]  # the number of a corpus, and of a part of it
Hashes = NDArray[np.uint64]  # [pairs] over both sides
Lengths = NDArray[np.uint16]  # [pairs, 2] characters in source and target, at most 65,535
SentenceHashes = NDArray[np.uint64]  # [pairs, 2] of both sides; texts have the same hash if their words are equal


class CleanChunk(NamedTuple):
    """Some pairs of a part, as written to its files."""

    place: Place
    text: bytes  # all source lines, then all target lines, compressed
    lines: NDArray[np.int64]  # [pairs] line number in the corpus, from 1
    hashes: Hashes
    lengths: Lengths
    sentences: SentenceHashes  # of training text, otherwise none
    counts: Counter[str]
    mismatches: list[Mismatch]  # stretches that do not seem to be translations
    is_last: bool  # whether the corpus ends with it


def clean_pairs(cleaners: Sequence[Cleaner], item: tuple[Place, RawPairs, bool]) -> CleanChunk:
    """Cleans a chunk in any process; without PyTorch, so that processes start quickly.

    Args:
        cleaners: those of all corpora.
        item: the chunk's place, its lines, and whether the corpus ends with it.

    Raises:
        CorpusError: a line cannot be read, and dropping its pair is not allowed.
    """
    place, raw, is_last = item
    cleaner = cleaners[place[0]]
    clean = cleaner(raw)
    src, tgt = ([f"{line}\n".encode() for line in side] for side in (clean.src, clean.tgt))
    digests = (hashlib.blake2b(s + t, digest_size=8).digest() for s, t in zip(src, tgt, strict=True))
    lengths = np.array([list(map(len, clean.src)), list(map(len, clean.tgt))])
    return CleanChunk(
        place,
        zlib.compress(b"".join((*src, *tgt)), _LEVEL),
        np.asarray(clean.numbers, dtype=np.int64),
        np.frombuffer(b"".join(digests), dtype=np.uint64),
        lengths.clip(max=_MAX_LENGTH).astype(np.uint16).T,
        np.zeros((0, 2), np.uint64) if cleaner.keep_empty else hash_sentences(clean),
        clean.counts,
        mismatches(clean.src, clean.tgt, clean.numbers),
        is_last,
    )


def lines_of(text: bytes, pairs: int) -> tuple[list[bytes], list[bytes]]:
    """Returns the source and target lines, without their newlines, of ``CleanChunk.text``."""
    lines = zlib.decompress(text).split(b"\n")
    return lines[:pairs], lines[pairs : 2 * pairs]


def hash_sentences(pairs: CleanPairs) -> SentenceHashes:
    """Returns the hashes of both sides of some pairs."""
    digests = b"".join(hash_of(line) for pair in zip(pairs.src, pairs.tgt, strict=True) for line in pair)
    return np.frombuffer(digests, "<u8").reshape(-1, 2)
