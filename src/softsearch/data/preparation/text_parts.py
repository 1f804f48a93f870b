"""Cleaned text in parts: a folder for each corpus, or for each four million lines of one.

A part is named by the hash of the corpus's files and filters, and its number in the corpus. What is made stays,
whatever happens to other parts or corpora; several processes or hosts may make parts at the same time.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.preparation.cache_folder import PARTS, damage, make_folder, named_folder
from softsearch.data.preparation.clean import CleanChunk, Hashes, Lengths, Place, SentenceHashes, clean_pairs, lines_of
from softsearch.data.preparation.encode import LINES, read_array
from softsearch.data.preparation.parallelism import Mismatch
from softsearch.data.preparation.processes import ordered_map
from softsearch.text.corpus import RawPairs, read_raw
from softsearch.text.filters import Cleaner

PART_LINES = 1 << 22  # a part ends with the chunk that reaches this number of lines
_FORMAT = 1
_HEADER, _SIZE = "part.json", "parts"
_ARRAYS = (LINES, "hashes", "lengths", "sentences")


class Share(NamedTuple):
    """The parts that one of several hosts makes: every N-th, beginning with another on each.

    Attributes:
        number: of the host, from 1.
        hosts: their number, N.
    """

    number: int
    hosts: int

    def has(self, place: Place) -> bool:
        """Tells whether a part is one of them."""
        return sum(place) % self.hosts == self.number - 1

    def made(self, number: int, corpus: "RawCorpus", cache_dir: Path) -> Iterator["TextPart"]:
        """Yields those of corpus ``number``, if they are made."""
        for part in count((self.number - 1 - number) % self.hosts, self.hosts):
            if damage(folder := corpus.folder(cache_dir, part)) is not None:
                return
            yield TextPart(folder)


EVERYTHING = Share(1, 1)


@dataclass(frozen=True)
class RawCorpus:
    """Two files to clean.

    Args:
        split: the split that they belong to.
        cleaner: has the files and filters.
        digests: the SHA-256 of both files.
    """

    split: str
    cleaner: Cleaner
    digests: tuple[str, str]

    def folder(self, cache_dir: Path, part: int) -> Path:
        """Returns the path of a part; filters that compare pairs with one another have no influence on it."""
        filters: object = None  # that of text of which every line is kept
        if not self.cleaner.keep_empty:
            of_pairs = replace(self.cleaner.filters, duplicates=False, max_length_z=None)
            filters = asdict(of_pairs), [letter.pattern for letter in self.cleaner.letters]
        return named_folder(cache_dir / PARTS, "text", repr((_FORMAT, self.digests, PART_LINES, part, filters)))

    def size_folder(self, cache_dir: Path) -> Path:
        """Returns the path of the number of its parts."""
        return named_folder(cache_dir / PARTS, "size", repr((_FORMAT, self.digests, PART_LINES)))

    def parts(self, cache_dir: Path) -> Iterator["TextPart"]:
        """Yields the parts that are there, as far as none is missing; the corpus is complete if one is the last."""
        number, is_last = 0, False
        while not is_last and damage(folder := self.folder(cache_dir, number)) is None:
            part = TextPart(folder)
            number, is_last = number + 1, part.is_last
            yield part


class TextChunk(NamedTuple):
    """Some pairs of a part, to be read in any process."""

    path: Path
    begin: int  # the place in the file, in bytes
    size: int
    pairs: int

    def read(self) -> tuple[list[bytes], list[bytes]]:
        """Returns the source and target lines, without newlines."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            return lines_of(file.read(self.size), self.pairs)


class TextPart:
    """A folder of cleaned pairs, including those that later turn out to be repeated or unusual.

    Attributes:
        pairs: number of pairs.
        is_last: whether the corpus ends with it.
        counts: findings in it.
        mismatches: stretches that do not seem to be translations.
    """

    def __init__(self, folder: Path) -> None:
        header = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
        self.folder, self.pairs, self.is_last = folder, int(header["pairs"]), bool(header["is_last"])
        self.counts = Counter(header["counts"])
        self.mismatches = [Mismatch(*found) for found in header["mismatches"]]

    def chunks(self) -> Iterator[TextChunk]:
        """Yields the pairs, a few thousand at a time."""
        begin = 0
        for pairs, size in read_array(self.folder / "chunks", np.int64).reshape(-1, 2).tolist():
            yield TextChunk(self.folder / "text", begin, size, pairs)
            begin += size

    @property
    def lines(self) -> NDArray[np.int64]:
        """Line numbers in the corpus, from 1."""
        return read_array(self.folder / LINES, np.int64)

    @property
    def hashes(self) -> Hashes:
        """Hashes of the pairs."""
        return read_array(self.folder / "hashes", np.uint64)

    @property
    def lengths(self) -> Lengths:
        """Characters of both sides."""
        return read_array(self.folder / "lengths", np.uint16).reshape(-1, 2)

    @property
    def sentences(self) -> SentenceHashes:
        """Hashes of the words of both sides; none but of training text."""
        return read_array(self.folder / "sentences", np.uint64).reshape(-1, 2)


def make_text_parts(
    corpora: Sequence[RawCorpus], cache_dir: Path, *, processes: int, progress: Callable[[int], object], share: Share
) -> int:
    """Makes the parts of a share that are missing, and returns their number.

    ``progress`` is called with the number of lines read so far.

    Raises:
        CorpusError: a file cannot be read, or the disk is full.
    """
    raw = (item for number, corpus in enumerate(corpora) for item in _missing(number, corpus, cache_dir, share))
    cleaned = ordered_map(partial(clean_pairs, [corpus.cleaner for corpus in corpora]), raw, processes)
    made = 0
    for (number, part), chunks in groupby(_watched(cleaned, progress), lambda chunk: chunk.place):
        make_folder(corpora[number].folder(cache_dir, part), partial(_write, chunks))
        made += 1
    return made


def _missing(number: int, corpus: RawCorpus, cache_dir: Path, share: Share) -> Iterator[tuple[Place, RawPairs, bool]]:
    """Yields the raw text of the share's missing parts; that before them is read and skipped."""
    if any(part.is_last for part in corpus.parts(cache_dir)):
        return
    last = _last_missing(number, corpus, cache_dir, share)
    if last == -1:
        return
    part, lines, is_wanted = -1, PART_LINES, False
    for raw, is_last in _with_last(read_raw(corpus.cleaner.src, corpus.cleaner.tgt)):
        if lines >= PART_LINES:
            if part == last:
                return
            part, lines = part + 1, 0
            is_wanted = share.has((number, part)) and damage(corpus.folder(cache_dir, part)) is not None
        lines += len(raw.src)
        if is_wanted:
            yield (number, part), raw, is_last
    make_folder(corpus.size_folder(cache_dir), partial(_write_size, part + 1))


def _last_missing(number: int, corpus: RawCorpus, cache_dir: Path, share: Share) -> int | None:
    """Returns the number of the share's last missing part, or -1; None if no host has read the corpus to its end."""
    folder = corpus.size_folder(cache_dir)
    if damage(folder) is not None:
        return None
    own = (part for part in range(int((folder / _SIZE).read_text())) if share.has((number, part)))
    return max((part for part in own if damage(corpus.folder(cache_dir, part)) is not None), default=-1)


def _write_size(parts: int, folder: Path) -> None:
    (folder / _SIZE).write_text(str(parts))


def _with_last(chunks: Iterable[RawPairs]) -> Iterator[tuple[RawPairs, bool]]:
    """Yields chunks, and whether each is the last."""
    before = None
    for chunk in chunks:
        if before is not None:
            yield before, False
        before = chunk
    if before is not None:
        yield before, True


def _watched(chunks: Iterable[CleanChunk], progress: Callable[[int], object]) -> Iterator[CleanChunk]:
    lines = 0
    for chunk in chunks:
        lines += chunk.counts["lines"]
        progress(lines)
        yield chunk


def _write(chunks: Iterable[CleanChunk], folder: Path) -> None:
    pairs, counts, found, is_last = 0, Counter[str](), list[Mismatch](), False
    with ExitStack() as stack:
        text, index, *arrays = (stack.enter_context((folder / n).open("wb")) for n in ("text", "chunks", *_ARRAYS))
        for chunk in chunks:
            text.write(chunk.text)
            index.write(np.array([len(chunk.lines), len(chunk.text)], np.int64).tobytes())
            columns: Sequence[NDArray[Any]] = (chunk.lines, chunk.hashes, chunk.lengths, chunk.sentences)
            for file, array in zip(arrays, columns, strict=True):
                file.write(array.tobytes())
            pairs += len(chunk.lines)
            counts.update(chunk.counts)
            found += chunk.mismatches
            is_last = chunk.is_last
    header = {"pairs": pairs, "is_last": is_last, "counts": counts, "mismatches": found}
    (folder / _HEADER).write_text(json.dumps(header), encoding="utf-8")
