"""Validation and test pairs split off the training text by hashes of their sources."""

import hashlib
import logging
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import LEFT_OUT, FilePair, ParallelSource, digest_of, given_links, is_size
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.errors import CorpusError
from softsearch.ranges import AtLeastOne, Range
from softsearch.text.corpus import read_raw, write_lines
from softsearch.text.filters import Cleaner
from softsearch.text.word_links import lines_of_links

HeldOut = AtLeastOne | Annotated[float, Range(0, 1, open_low=True, open_high=True)]  # pairs, or a share of all
_FORMAT = 1
_log = logging.getLogger(__name__)


class Division(NamedTuple):
    """The files of the remaining training text and of each held-out split."""

    train: list[FilePair]
    held_out: dict[str, FilePair]


def divide(source: ParallelSource, corpora: list[FilePair], cache_dir: Path) -> Division:
    """Splits pairs off training corpora, into files in ``cache_dir``, written if necessary.

    The pairs whose sources have the lowest hashes are held out; those with equal sources stay together, so that none
    remains in training. Adding a test set does not change the validation set. Pairs that training would drop stay in
    training.

    Args:
        source: its options ``val`` and ``test`` are numbers or shares of pairs to split off; its filters decide which
            pairs are eligible.
        corpora: the training files.
        cache_dir: folder for the files.

    Raises:
        CorpusError: there are too few pairs, or a file cannot be read.
    """
    sizes = {split: size for split in ("val", "test") if is_size(size := getattr(source, split))}
    if not sizes:
        return Division(corpora, {})
    letters = source.letters()
    filters = asdict(source.filters), [letter.pattern for letter in letters]
    links = given_links(source.links) or []
    digests = [tuple(map(digest_of, pair)) for pair in corpora], [*sizes.items()], filters
    identity = repr((_FORMAT, *digests, *([[*map(digest_of, links)]] if links else [])))
    trained = [f"train-{number}" for number in range(len(corpora))]

    def write(folder: Path) -> None:
        hashes = [_hashes(Cleaner(src=src, tgt=tgt, filters=source.filters, letters=letters)) for src, tgt in corpora]
        places, begin = choose(np.concatenate(hashes), sizes), 0
        with ExitStack() as stack:

            def new(name: str) -> list[IO[bytes]]:
                return [stack.enter_context(path.open("wb")) for path in _files(folder, name)]

            held_out = [new(split) for split in sizes]
            for name, pair in zip(trained, corpora, strict=True):
                outputs = [new(name), *held_out]
                for chunk in read_raw(*pair):
                    if chunk.number == 1:
                        chunk.src[0], chunk.tgt[0] = (side[0].removeprefix(BOM_UTF8) for side in (chunk.src, chunk.tgt))
                    end = begin + len(chunk.src)
                    for place, src, tgt in zip(places[begin:end].tolist(), chunk.src, chunk.tgt, strict=True):
                        outputs[place][0].write(src + b"\n")
                        outputs[place][1].write(tgt + b"\n")
                    begin = end
        begin = 0
        for name, path, part in zip(trained, links, hashes, strict=False):
            is_kept = places[begin : begin + len(part)] == 0
            kept, left_out = (np.flatnonzero(mask) + 1 for mask in (is_kept, ~is_kept))
            write_lines(folder / f"{name}.links", (line for _, line in lines_of_links(path, kept.tolist(), len(part))))
            write_lines(folder / f"{name}{LEFT_OUT}", map(str, left_out.tolist()))  # line numbers, for messages
            begin += len(part)
        for place, split in enumerate(sizes, start=1):
            _log.info("data.%s: %d pairs, no longer in training", split, np.count_nonzero(places == place))

    folder = made_folder(cache_dir, "held-out", identity, write)
    return Division([_files(folder, name) for name in trained], {split: _files(folder, split) for split in sizes})


def choose(hashes: NDArray[np.uint64], sizes: Mapping[str, int | float]) -> NDArray[np.uint8]:
    """Returns for each pair 0 if it stays in training, or the number of its split, from 1.

    Args:
        hashes: hashes of the sources; 0 for pairs that stay in training.
        sizes: the number of pairs, or the share of those with a hash, for each split; fewer if equal sources do not
            fit.

    Raises:
        CorpusError: there are too few pairs.
    """
    distinct, counts = np.unique(hashes[hashes > 0], return_counts=True)
    total = int(counts.sum())
    places = np.zeros(len(distinct), np.uint8)
    for place, (split, size) in enumerate(sizes.items(), start=1):
        wanted = left = size if isinstance(size, int) else max(1, round(size * total))
        for index in np.flatnonzero(places == 0).tolist():
            if counts[index] <= left:
                places[index] = place
                left -= int(counts[index])
            if not left:
                break
        if left == wanted or np.all(places):
            raise CorpusError(
                f"data.{split}={size} cannot be split off: the training text has {total:,} pairs with text, from "
                f"{len(distinct):,} different sources, and some must remain to train on; set a lower number, or files"
            )
    chosen = np.zeros(len(hashes), np.uint8)
    chosen[hashes > 0] = places[np.searchsorted(distinct, hashes[hashes > 0])]
    return chosen


def _hashes(clean: Cleaner) -> NDArray[np.uint64]:
    """Returns a hash of the source of each line of a corpus, 0 if training drops the pair."""
    parts = []
    for raw in read_raw(clean.src, clean.tgt):
        kept = clean(raw)
        part = np.zeros(len(raw.src), np.uint64)
        texts = (" ".join(line.split()).encode() for line in kept.src)
        digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
        part[np.array(kept.numbers, np.int64) - raw.number] = np.frombuffer(digests, "<u8") | np.uint64(1)
        parts.append(part)
    return np.concatenate(parts)


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"
