"""Hashes of the sentences of training text, made once for each text, by which test sentences are looked up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import FilePair, ParallelSource, digest_of
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.encode import read_array
from softsearch.data.preparation.processes import ordered_map
from softsearch.machine import cores
from softsearch.text.corpus import RawPairs, read_raw
from softsearch.text.filters import Cleaner, CleanPairs
from softsearch.text.same_text import hash_of

_FORMAT = 1
_NAME = "hashes"
_FEW_BYTES = 50_000_000  # of text, for which further processes would not have started in time
SentenceHashes = NDArray[np.uint64]  # [pairs, 2] of both sides; texts have the same hash if their words are equal


def hash_sentences(pairs: CleanPairs) -> SentenceHashes:
    """Returns the hashes of some pairs."""
    digests = b"".join(hash_of(line) for pair in zip(pairs.src, pairs.tgt, strict=True) for line in pair)
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


def keep_sentence_hashes(source: ParallelSource, files: Sequence[FilePair], cache_dir: Path, written: Path) -> None:
    """Takes over a file of hashes of the training text ``files``, from their preparation.

    Raises:
        CorpusError: the disk is full or the folder is not writable.
    """

    def take(folder: Path) -> None:
        written.replace(folder / _NAME)

    made_folder(cache_dir, "sentences", _identity(source, files), take)


def sentence_hashes(
    source: ParallelSource, files: Sequence[FilePair], cache_dir: Path, on_done: Callable[[int], object]
) -> SentenceHashes:
    """Returns the hashes of the training text ``files``, as a file, made on all cores unless preparation made it.

    ``on_done`` is called with further numbers of pairs.

    Raises:
        CorpusError: the text cannot be read, the disk is full or the folder is not writable.
    """

    def write(folder: Path) -> None:
        letters = source.letters()
        cleaners = {
            number: Cleaner(src=src, tgt=tgt, filters=source.filters, letters=letters)
            for number, (src, tgt) in enumerate(files)
        }
        raw = ((number, pairs) for number, pair in enumerate(files) for pairs in read_raw(*pair))
        is_small = sum(path.stat().st_size for pair in files for path in pair) < _FEW_BYTES
        with (folder / _NAME).open("wb") as file:
            for hashes in ordered_map(partial(_hashes_of, cleaners), raw, 1 if is_small else cores()):
                file.write(hashes.tobytes())
                on_done(len(hashes))

    folder = made_folder(cache_dir, "sentences", _identity(source, files), write)
    return read_array(folder / _NAME, np.uint64).reshape(-1, 2)


def _hashes_of(cleaners: Mapping[int, Cleaner], item: tuple[int, RawPairs]) -> SentenceHashes:
    number, raw = item
    return hash_sentences(cleaners[number](raw))


def _identity(source: ParallelSource, files: Sequence[FilePair]) -> str:
    filters = asdict(source.filters), [letter.pattern for letter in source.letters()]
    return repr((_FORMAT, [tuple(map(digest_of, pair)) for pair in files], filters))
