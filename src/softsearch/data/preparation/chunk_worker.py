"""What is done to one chunk of a corpus, here or in a process of its own, which starts at once without PyTorch."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.npy_writer import flat
from softsearch.text.corpus import Cleaner, RawPairs
from softsearch.text.tokenizer import SentencePieceTokenizer

HASH_BYTES = 8
Corpus = tuple[str, int]  # the split, and the number among its corpora
Tokens = tuple[NDArray[np.integer], NDArray[np.int32]]  # all ids in one row, and the length of each sentence


class CleanChunk(NamedTuple):
    """Pairs that are kept, ready to be written to files."""

    corpus: Corpus
    src: bytes  # lines with their newlines
    tgt: bytes
    numbers: NDArray[np.int64]  # [pairs] the line of each in the corpus, from 1
    hashes: NDArray[np.uint64]  # [pairs] of both sides together
    counts: Counter[str]


@dataclass(frozen=True)
class CleanTask:
    """Cleans the chunks of many corpora."""

    cleaners: Mapping[Corpus, Cleaner]

    def __call__(self, item: tuple[Corpus, RawPairs]) -> CleanChunk:
        """Raises CorpusError as :class:`Cleaner` does."""
        corpus, raw = item
        clean = self.cleaners[corpus](raw)
        src, tgt = ([f"{line}\n".encode() for line in side] for side in (clean.src, clean.tgt))
        digests = (hashlib.blake2b(s + t, digest_size=HASH_BYTES).digest() for s, t in zip(src, tgt, strict=True))
        hashes = np.frombuffer(b"".join(digests), dtype=np.uint64)
        numbers = np.asarray(clean.numbers, dtype=np.int64)
        return CleanChunk(corpus, b"".join(src), b"".join(tgt), numbers, hashes, clean.counts)


@dataclass(frozen=True)
class EncodeTask:
    """Turns the lines of a chunk into token ids."""

    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]

    def __call__(self, item: tuple[str, list[bytes], list[bytes]]) -> tuple[str, Tokens, Tokens]:
        """The split, the source lines and the target lines -> the split and both sides' ids."""
        split, *sides = item
        src, tgt = (
            flat([tokenizer.encode(line.rstrip(b"\n").decode()) for line in side], tokenizer.vocab_size)
            for tokenizer, side in zip(self.tokenizers, sides, strict=True)
        )
        return split, src, tgt
