"""Validation and test pairs split off the training text, so that no sentence of theirs stays in it, on either side."""

import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import DIVISION, LEFT_OUT, FilePair, ParallelSource, given_links, is_size
from softsearch.data.corpora.groups import Hashes, PairGroups, chunks
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digests_of
from softsearch.errors import CorpusError
from softsearch.ranges import AtLeastOne, Range
from softsearch.text.corpus import read_raw, write_lines
from softsearch.text.filters import Cleaner
from softsearch.text.plain_values import nested_values
from softsearch.text.same_text import hash_of
from softsearch.text.word_links import lines_of_links

HeldOut = AtLeastOne | Annotated[float, Range(0, 1, open_low=True, open_high=True)]  # pairs, or a share of all
_SPLITS = ("val", "test")  # in this order, so that adding a test set does not change the validation set
_NOWHERE = len(_SPLITS) + 1
_MAX_VALUES = 100_000  # in a config
_log = logging.getLogger(__name__)


class Division(NamedTuple):
    """The files of the remaining training text and of each held-out split."""

    train: list[FilePair]
    held_out: dict[str, FilePair]


@dataclass(frozen=True)
class Whole:
    """A source before the division.

    Args:
        source: its options ``val`` and ``test`` may be numbers or shares of pairs to split off; its filters decide
            which pairs are eligible.
        corpora: its training files.
        key: its place in the config, for messages.
    """

    source: ParallelSource
    corpora: list[FilePair]
    key: str = "data"

    @property
    def sizes(self) -> dict[str, int | float]:
        """The numbers or shares of pairs to split off."""
        return {split: getattr(self.source, split) for split in _SPLITS if is_size(getattr(self.source, split, None))}

    @property
    def links(self) -> list[Path]:
        """The given files of links."""
        return given_links(self.source.links) or []

    def identity(self, cache_dir: Path) -> object:
        """Plain values that determine the division."""
        filters = asdict(self.source.filters), [letter.pattern for letter in self.source.letters()]
        return (
            [tuple(digests_of(pair, cache_dir)) for pair in self.corpora],
            self.sizes,
            filters,
            digests_of(self.links, cache_dir),
        )

    def write_hashes(self, file: IO[bytes]) -> list[int]:
        """Writes hashes of both sides of each pair, 0 if training drops it; returns each corpus's number of pairs."""
        source, letters = self.source, self.source.letters()
        return [
            _write_hashes(Cleaner(src=s, tgt=t, filters=source.filters, letters=letters), file) for s, t in self.corpora
        ]


def splits_pairs_off(config: object) -> bool:
    """Returns whether a node ``data`` of a config has a number of pairs to split off, at any depth."""
    nodes = [node for node in nested_values(config, _MAX_VALUES) if isinstance(node, dict)]
    return any(is_size(node.get(split)) for node in nodes for split in _SPLITS)


def divide(wholes: Sequence[Whole], cache_dir: Path) -> list[Division]:
    """Splits pairs off the training text of sources that are trained on together, into files in ``cache_dir``.

    Pairs that share a sentence, on any side and in any source, stay together, in either direction: of a corpus in both
    directions the same pairs are held out (``softsearch.text.same_text`` says which sentences are the same). The
    groups with the lowest hashes are held out. Pairs that training would drop stay in training.

    Raises:
        CorpusError: there are too few pairs, or a file cannot be read.
    """
    if not any(whole.sizes for whole in wholes):
        return [Division(whole.corpora, {}) for whole in wholes]

    def write(folder: Path) -> None:
        scratch = folder / "scratch"
        scratch.mkdir()
        _write_parts(folder, wholes, scratch)
        shutil.rmtree(scratch)

    folder = made_folder(
        cache_dir, "held-out", repr((DIVISION, [whole.identity(cache_dir) for whole in wholes])), write
    )
    return [
        Division(
            [_files(folder, f"train-{number}-{corpus}") for corpus in range(len(whole.corpora))],
            {split: _files(folder, f"{split}-{number}") for split in whole.sizes},
        )
        for number, whole in enumerate(wholes)
    ]


def _write_parts(folder: Path, wholes: Sequence[Whole], scratch: Path) -> None:
    with (scratch / "hashes").open("wb") as file:
        sizes = [whole.write_hashes(file) for whole in wholes]
    hashes = np.memmap(scratch / "hashes", np.uint64, "r").reshape(-1, 2)
    groups = PairGroups(hashes, [*map(sum, sizes)], scratch)
    places, begin = choose(groups, {whole.key: whole.sizes for whole in wholes}), 0
    for number, (whole, own) in enumerate(zip(wholes, sizes, strict=True)):
        bounds = begin + np.cumsum([0, *own])
        _write_part(folder, number, whole, [places[first:end] for first, end in pairwise(bounds)])
        begin = bounds[-1]


def choose(groups: PairGroups, sizes: Mapping[str, Mapping[str, int | float]]) -> NDArray[np.int8]:
    """Returns where each pair belongs: 0 in training, 1 in validation, 2 in test, 3 nowhere.

    A group is held out as a whole, where it fits into the numbers of all sources. Its pairs of sources whose number is
    reached, or which have none, are left out, unless they are far more than those held out.

    Args:
        groups: the groups of the pairs; pairs in none stay in training.
        sizes: for each source, by its key, the number of pairs or the share of those in groups, by split; fewer are
            held out if groups do not fit.

    Raises:
        CorpusError: there are too few pairs.
    """
    places: NDArray[np.int8] = groups.new("places", np.int8, len(groups.keys))
    totals, chosen = groups.count(places, 0), np.zeros(0, np.uint64)
    for place, split in enumerate(_SPLITS, start=1):
        asked = [own.get(split, 0) for own in sizes.values()]
        wanted = np.array(
            [n if isinstance(n, int) else max(1, round(n * t)) for n, t in zip(asked, totals, strict=True)]
        )
        keys, takes = _choose_groups(groups, wanted, chosen)
        _set_places(groups, keys, np.where(takes, place, _NOWHERE).astype(np.int8), places)
        chosen = np.union1d(chosen, keys)
        taken, remaining = groups.count(places, place), groups.count(places, 0)
        for part, (key, size) in enumerate(zip(sizes, asked, strict=True)):
            if size and not (taken[part] and remaining[part]):
                distinct = sum(np.count_nonzero(counts[:, part]) for _, counts in groups.in_order())
                raise CorpusError(
                    f"{key}.{split}={size} cannot be split off: the training text has {totals[part]:,} pairs with "
                    f"text, in {distinct:,} groups that share no sentence, and some must remain to train on; set a "
                    "lower number, or files"
                )
    return places


def _choose_groups(groups: PairGroups, wanted: NDArray[np.int64], before: Hashes) -> tuple[Hashes, NDArray[np.bool_]]:
    """Returns the keys of groups to hold out, which were not chosen ``before``, and the sources whose pairs they take.

    The latter are ``[groups, sources]``; ``wanted`` is the number of pairs of each source.
    """
    left, keys, taking = wanted.copy(), list[np.uint64](), list[NDArray[np.bool_]]()
    for some, all_counts in groups.in_order() if left.any() else ():
        is_free = ~np.isin(some, before)
        for key, counts in zip(some[is_free], all_counts[is_free], strict=True):
            if not left.any():
                break
            takes = left > 0
            taken = counts[takes].sum()
            if 0 < taken >= counts.sum() / len(left) and bool(np.all((counts <= left)[takes])):
                keys.append(key)
                taking.append(takes)
                left -= counts * takes
        if not left.any():
            break
    return np.array(keys, np.uint64), np.array(taking, np.bool_).reshape(len(keys), len(left))


def _set_places(groups: PairGroups, keys: Hashes, by_source: NDArray[np.int8], places: NDArray[np.int8]) -> None:
    """Sets the places of all pairs of some groups; ``by_source`` are ``[groups, sources]``."""
    for chunk in chunks(len(places) if len(keys) else 0):
        own = groups.keys[chunk]
        at = np.searchsorted(keys, own).clip(max=len(keys) - 1)
        found = keys[at] == own
        places[chunk][found] = by_source[at[found], groups.sources(chunk)[found]]


def _write_hashes(clean: Cleaner, file: IO[bytes]) -> int:
    pairs = 0
    for raw in read_raw(clean.src, clean.tgt):
        kept = clean(raw)
        part = np.zeros((len(raw.src), 2), np.uint64)
        digests = b"".join(hash_of(line) for pair in zip(kept.src, kept.tgt, strict=True) for line in pair)
        part[np.array(kept.numbers, np.int64) - raw.number] = np.frombuffer(digests, "<u8").reshape(-1, 2) | np.uint64(
            1
        )
        file.write(part.tobytes())
        pairs += len(part)
    return pairs


def _write_part(folder: Path, part: int, whole: Whole, places: Sequence[NDArray[np.int8]]) -> None:
    """Writes the files of a source; ``places`` are those of the pairs of each corpus."""
    with ExitStack() as stack:

        def new(name: str) -> list[IO[bytes]]:
            return [stack.enter_context(path.open("wb")) for path in _files(folder, name)]

        held_out = {_SPLITS.index(split) + 1: new(f"{split}-{part}") for split in whole.sizes}
        for corpus, (pair, own) in enumerate(zip(whole.corpora, places, strict=True)):
            outputs, begin = {0: new(f"train-{part}-{corpus}"), **held_out}, 0
            for chunk in read_raw(*pair):
                end = begin + len(chunk.src)
                for place, *lines in zip(own[begin:end].tolist(), chunk.src, chunk.tgt, strict=True):
                    for output, line in zip(outputs.get(place, ()), lines, strict=False):
                        output.write(line + b"\n")
                begin = end
    for corpus, (links, own) in enumerate(zip(whole.links, places, strict=False)):
        kept = (number for number, place in enumerate(own, 1) if not place)
        left_out = (number for number, place in enumerate(own, 1) if place)
        path = folder / f"train-{part}-{corpus}"
        write_lines(path.with_suffix(".links"), (line for _, line in lines_of_links(links, kept, len(own))))
        write_lines(path.with_suffix(LEFT_OUT), map(str, left_out))  # line numbers, for messages
    counts = np.sum([np.bincount(own, minlength=_NOWHERE + 1) for own in places], axis=0).tolist()
    for split, size in whole.sizes.items():
        _log.info("%s.%s=%s: %d pairs, no longer in training", whole.key, split, size, counts[_SPLITS.index(split) + 1])
    if counts[_NOWHERE]:
        _log.info("%s: %d pairs left out, which share a sentence with held-out pairs", whole.key, counts[_NOWHERE])


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"
