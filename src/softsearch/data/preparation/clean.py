"""Cleaning: writes pairs to files, so that memory does not grow with the corpus, and marks repeated pairs.

Repeated pairs are found by 64-bit hashes: among n different pairs, about n^2 / 2^65 are mistaken for others, which
happens in 3 of a million corpora of 10 million pairs, and in 3 of a hundred corpora of a billion.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import compress, islice, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.encode import read_array
from softsearch.data.preparation.parallelism import Mismatch, mismatches
from softsearch.data.preparation.sentence_hashes import SentenceHashes, hash_sentences
from softsearch.text.corpus import RawPairs
from softsearch.text.filters import Cleaner

_CHUNK_PAIRS = 4096
HASH_CHUNK = 1 << 21  # hashes in memory at a time
SENTENCES = "sentences"  # file of a training corpus's hashes by words
_FILES = ("src", "tgt", "numbers", "hashes", "lengths", SENTENCES)
_ROUNDING = 1e-9  # for deviations, if all pairs have the same ratio
_MAX_LENGTH = 65_535  # training text has at most 10,000 characters
_log = logging.getLogger(__name__)

Corpus = tuple[str, int]  # the split, and the corpus's number in it
Words = tuple[set[bytes], set[bytes]]  # distinct words of source and target
Hashes = NDArray[np.uint64]
Lengths = NDArray[np.uint16]


class CleanChunk(NamedTuple):
    """Some pairs of a corpus, as written to files."""

    corpus: Corpus
    src: bytes  # lines with their newlines
    tgt: bytes
    numbers: NDArray[np.int64]  # [pairs] line number in the corpus, from 1
    hashes: Hashes  # [pairs] over both sides
    lengths: Lengths  # [pairs, 2] characters in source and target, at most 65,535
    sentences: SentenceHashes  # [pairs, 2] of training text, otherwise none
    counts: Counter[str]
    mismatches: list[Mismatch]  # stretches that do not seem to be translations


def clean_pairs(cleaners: Mapping[Corpus, Cleaner], item: tuple[Corpus, RawPairs]) -> CleanChunk:
    """Cleans a chunk in any process; without PyTorch, so that processes start quickly.

    Raises:
        CorpusError: a line cannot be read, and dropping its pair is not allowed.
    """
    corpus, raw = item
    clean = cleaners[corpus](raw)
    src, tgt = ([f"{line}\n".encode() for line in side] for side in (clean.src, clean.tgt))
    digests = (hashlib.blake2b(s + t, digest_size=8).digest() for s, t in zip(src, tgt, strict=True))
    hashes = np.frombuffer(b"".join(digests), dtype=np.uint64)
    numbers = np.asarray(clean.numbers, dtype=np.int64)
    lengths = np.array([list(map(len, clean.src)), list(map(len, clean.tgt))]).clip(max=_MAX_LENGTH).astype(np.uint16).T
    found = mismatches(clean.src, clean.tgt, clean.numbers)
    sentences = hash_sentences(clean) if corpus[0] == "train" else np.zeros((0, 2), np.uint64)
    return CleanChunk(corpus, b"".join(src), b"".join(tgt), numbers, hashes, lengths, sentences, clean.counts, found)


class CleanedCorpus:
    """The cleaned pairs of a split, one corpus after another, in the files of a new folder.

    They are written until ``stack`` is closed, and read afterwards.

    Attributes:
        written: number of pairs in each corpus, including repeated ones.
        counts: findings in each corpus.
        words: words at the start of each corpus.
        mismatches: stretches of each corpus that do not seem to be translations.
    """

    def __init__(self, folder: Path, corpora: int, stack: ExitStack) -> None:
        folder.mkdir()
        self._folder = folder
        self._files = [stack.enter_context((folder / name).open("wb")) for name in _FILES]
        self.written = [0] * corpora
        self.counts: list[Counter[str]] = [Counter() for _ in range(corpora)]
        self.words: list[Words] = []
        self.mismatches: list[list[Mismatch]] = [[] for _ in range(corpora)]
        self._dropped: NDArray[np.bool_] | None = None

    def append(self, chunk: CleanChunk) -> None:
        """Writes the next pairs."""
        numbers = chunk.numbers, chunk.hashes, chunk.lengths, chunk.sentences
        contents = chunk.src, chunk.tgt, *(each.tobytes() for each in numbers)
        for file, content in zip(self._files, contents, strict=True):
            file.write(content)
        number = chunk.corpus[1]
        self.written[number] += len(chunk.numbers)
        self.counts[number].update(chunk.counts)
        self.mismatches[number] += chunk.mismatches
        if number == len(self.words):
            self.words.append((set(chunk.src.split()), set(chunk.tgt.split())))

    def drop_repeated(self) -> None:
        """Drops repeated pairs, and counts them."""
        before = self.sizes()
        mark_repeated(self._hashes(), self._marks())
        self._count("repeated", before)

    def drop_unusual(self, most: float) -> None:
        """Drops pairs of unusual lengths (``mark_unusual``), and counts them."""
        before, dropped = self.sizes(), self._marks()
        lengths = read_array(self._folder / "lengths", np.uint16).reshape(-1, 2)
        for begin, end in pairwise(np.cumsum([0, *self.written])):
            mark_unusual(lengths[begin:end], dropped[begin:end], most)
        self._count("unusual", before)

    def count_training_pairs(self, split: str, training: "CleanedCorpus") -> int:
        """Returns the number of pairs that are also training pairs, including repeated ones, and warns about them."""
        shared = count_shared(training._hashes(), self._hashes())
        if shared:
            _log.warning("%d of the %d pairs of %s are also in the training data", shared, sum(self.sizes()), split)
        return shared

    def sizes(self) -> list[int]:
        """Returns the number of pairs left in each corpus."""
        if self._dropped is None:
            return list(self.written)
        begins = np.cumsum([0, *self.written])
        return [int(end - begin - np.count_nonzero(self._dropped[begin:end])) for begin, end in pairwise(begins)]

    def chunks(self) -> Iterator[tuple[list[bytes], list[bytes], NDArray[np.int64]]]:
        """Yields source lines, target lines (both with newlines) and line numbers, a few thousand pairs at a time."""
        numbers = read_array(self._folder / "numbers", np.int64)
        with (self._folder / "src").open("rb") as src, (self._folder / "tgt").open("rb") as tgt:
            for begin in range(0, len(numbers), _CHUNK_PAIRS):
                chunk = slice(begin, begin + _CHUNK_PAIRS)
                src_lines, tgt_lines = list(islice(src, _CHUNK_PAIRS)), list(islice(tgt, _CHUNK_PAIRS))
                if self._dropped is None:
                    yield src_lines, tgt_lines, numbers[chunk]
                else:
                    kept = ~self._dropped[chunk]
                    yield list(compress(src_lines, kept)), list(compress(tgt_lines, kept)), numbers[chunk][kept]

    def sample(self, side: Literal[0, 1], most: int) -> Iterator[str]:
        """Yields the lines of a side: all, or ``most`` at equal distances."""
        total = sum(self.sizes())
        for index, line in enumerate(line for chunk in self.chunks() for line in chunk[side]):
            if total <= most or index * most // total < (index + 1) * most // total:
                yield line.rstrip(b"\n").decode()

    def _marks(self) -> NDArray[np.bool_]:
        """Returns a mark for each pair, whether it is dropped; changes to them are kept."""
        if self._dropped is None:
            pairs = sum(self.written)
            self._dropped = (
                np.memmap(self._folder / "dropped", np.bool_, "w+", shape=pairs) if pairs else np.zeros(0, np.bool_)
            )
        return self._dropped

    def _count(self, name: str, before: list[int]) -> None:
        for counts, had, has in zip(self.counts, before, self.sizes(), strict=True):
            counts[name] = had - has

    def _hashes(self) -> Hashes:
        return read_array(self._folder / "hashes", np.uint64)


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


def mark_repeated(hashes: Hashes, dropped: NDArray[np.bool_]) -> None:
    """Sets ``dropped`` for each pair whose hash occurs earlier; both arrays may be files.

    Reads all hashes once per 2 million of them. Each pass compares about 2 million hashes, those with one remainder.
    """
    parts = -(-len(hashes) // HASH_CHUNK)
    for part in range(parts):
        indices = np.concatenate([begin + np.flatnonzero(chunk % parts == part) for begin, chunk in _chunks(hashes)])
        values = hashes[indices]
        order = np.argsort(values, kind="stable")  # equal ones keep the order of the corpus
        ordered = values[order]
        dropped[indices[order[1:][ordered[1:] == ordered[:-1]]]] = True


def mark_unusual(lengths: Lengths, dropped: NDArray[np.bool_], most: float) -> None:
    """Sets ``dropped`` for each pair in a corpus with unusual ``lengths``; both arrays may be files.

    A target of t characters for a source of s has the deviation d = (t - c s) / sqrt(v s) (Gale & Church 1993, "A
    program for aligning sentences in bilingual corpora", section 3), and pairs with abs(d) > ``most`` are dropped. Over
    the pairs not dropped before, c is the number of target characters per source character, and v the mean of (t - c
    s)^2 / s, which makes the mean of d^2 one. Reads the lengths three times.
    """
    if np.all(dropped):
        return
    parts = [slice(begin, begin + HASH_CHUNK) for begin in range(0, len(lengths), HASH_CHUNK)]
    sums = [lengths[part][~dropped[part]].sum(axis=0, dtype=np.int64) for part in parts]
    src_sum, tgt_sum = np.sum(sums, axis=0)

    def squares(chunk: Lengths) -> NDArray[np.float64]:
        src, tgt = chunk.T.astype(np.float64)
        return (tgt - tgt_sum / src_sum * src) ** 2 / src

    total = sum(squares(lengths[part][~dropped[part]]).sum() for part in parts)
    variance = total / np.count_nonzero(~dropped)
    for part in parts:
        dropped[part] |= squares(lengths[part]) > most**2 * variance + _ROUNDING


def count_shared(hashes: Hashes, others: Hashes) -> int:
    """Returns how many of ``others``, a small array, occur in ``hashes``."""
    distinct, inverse = np.unique(others, return_inverse=True)
    shared = np.zeros(len(distinct), dtype=np.bool_)
    for _, chunk in _chunks(hashes):
        places = np.searchsorted(distinct[1:], chunk, side="right")  # of the last that is not larger
        shared[places[distinct[places] == chunk]] = True
    return int(shared[inverse].sum())


def _chunks(hashes: Hashes) -> Iterator[tuple[int, Hashes]]:
    for begin in range(0, len(hashes), HASH_CHUNK):
        yield begin, np.asarray(hashes[begin : begin + HASH_CHUNK])
