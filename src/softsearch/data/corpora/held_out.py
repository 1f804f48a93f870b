"""Validation and test pairs split off the training text, so that no sentence of theirs stays in it, on either side."""

import logging
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import DIVISION, LEFT_OUT, FilePair, ParallelSource, digest_of, given_links, is_size
from softsearch.data.preparation.cache_folder import made_folder
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
_Hashes = NDArray[np.uint64]
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

    def identity(self) -> object:
        """Plain values that determine the division."""
        filters = asdict(self.source.filters), [letter.pattern for letter in self.source.letters()]
        return (
            [tuple(map(digest_of, pair)) for pair in self.corpora],
            self.sizes,
            filters,
            [*map(digest_of, self.links)],
        )

    def hashes(self) -> list[_Hashes]:
        """Returns ``[pairs, 2]`` for each corpus: hashes of both sides, 0 if training drops the pair."""
        source, letters = self.source, self.source.letters()
        return [_hashes(Cleaner(src=s, tgt=t, filters=source.filters, letters=letters)) for s, t in self.corpora]


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
        hashes = [whole.hashes() for whole in wholes]
        parts = np.repeat(np.arange(len(wholes)), [sum(map(len, own)) for own in hashes])
        places = choose(np.concatenate([h for own in hashes for h in own]), parts, {w.key: w.sizes for w in wholes})
        begin = 0
        for number, (whole, own) in enumerate(zip(wholes, hashes, strict=True)):
            end = begin + sum(map(len, own))
            _write_part(folder, number, whole, np.split(places[begin:end], np.cumsum([*map(len, own)])[:-1]))
            begin = end

    folder = made_folder(cache_dir, "held-out", repr((DIVISION, [whole.identity() for whole in wholes])), write)
    return [
        Division(
            [_files(folder, f"train-{number}-{corpus}") for corpus in range(len(whole.corpora))],
            {split: _files(folder, f"{split}-{number}") for split in whole.sizes},
        )
        for number, whole in enumerate(wholes)
    ]


def choose(
    hashes: _Hashes, parts: NDArray[np.intp], sizes: Mapping[str, Mapping[str, int | float]]
) -> NDArray[np.intp]:
    """Returns where each pair belongs: 0 in training, 1 in validation, 2 in test, 3 nowhere.

    A group is held out as a whole, where it fits into the numbers of all sources. Its pairs of sources whose number is
    reached, or which have none, are left out, unless they are far more than those held out.

    Args:
        hashes: ``[pairs, 2]`` hashes of both sides; 0 for pairs that stay in training.
        parts: ``[pairs]`` index of each pair's source.
        sizes: for each source, by its key, the number of pairs or the share of those with a hash, by split; fewer are
            held out if groups do not fit.

    Raises:
        CorpusError: there are too few pairs.
    """
    eligible = np.flatnonzero(hashes[:, 0])
    groups = _groups(hashes[eligible])
    in_order = eligible[np.argsort(groups, kind="stable")]
    bounds = np.cumsum([0, *np.bincount(groups)])
    totals = np.bincount(parts[eligible], minlength=len(sizes))
    places = np.zeros(len(hashes), np.intp)
    for place, split in enumerate(_SPLITS, start=1):
        asked = [own.get(split, 0) for own in sizes.values()]
        wanted = np.array(
            [n if isinstance(n, int) else max(1, round(n * t)) for n, t in zip(asked, totals, strict=True)]
        )
        left = wanted.copy()
        for begin, end in pairwise(bounds):
            if not left.any():
                break
            pairs = in_order[begin:end]
            counts, takes = np.bincount(parts[pairs], minlength=len(sizes)), left > 0
            taken = counts[takes].sum()
            fits = 0 < taken >= len(pairs) / len(sizes) and bool(np.all((counts <= left)[takes]))
            if fits and not places[pairs[0]]:
                places[pairs] = np.where(takes[parts[pairs]], place, _NOWHERE)
                left -= counts * takes
        remaining = np.bincount(parts[eligible][places[eligible] == 0], minlength=len(sizes))
        for part, (key, size) in enumerate(zip(sizes, asked, strict=True)):
            if size and (left[part] == wanted[part] or not remaining[part]):
                distinct = len(np.unique(groups[parts[eligible] == part]))
                raise CorpusError(
                    f"{key}.{split}={size} cannot be split off: the training text has {totals[part]:,} pairs with "
                    f"text, in {distinct:,} groups that share no sentence, and some must remain to train on; set a "
                    "lower number, or files"
                )
    return places


def _groups(hashes: _Hashes) -> NDArray[np.intp]:
    """Returns for each pair of hashes the number of its group, which shares no hash with others, in a random order.

    The order follows the text of each group alone.
    """
    texts, ends = np.unique(hashes, return_inverse=True)
    ends = ends.reshape(-1, 2)
    lowest = np.arange(len(texts))  # the lowest text that each is known to be connected with
    while np.any((found := lowest[ends])[:, 0] != found[:, 1]):
        np.minimum.at(lowest, found, found.min(axis=1, keepdims=True))
        while np.any(lowest != (further := lowest[lowest])):
            lowest = further
    mixed = np.zeros(len(texts), np.uint64)
    np.bitwise_xor.at(mixed, lowest, texts)
    return np.unique(mixed[lowest[ends[:, 0]]], return_inverse=True)[1]


def _hashes(clean: Cleaner) -> _Hashes:
    parts = []
    for raw in read_raw(clean.src, clean.tgt):
        kept = clean(raw)
        part = np.zeros((len(raw.src), 2), np.uint64)
        digests = b"".join(hash_of(line) for pair in zip(kept.src, kept.tgt, strict=True) for line in pair)
        part[np.array(kept.numbers, np.int64) - raw.number] = np.frombuffer(digests, "<u8").reshape(-1, 2) | np.uint64(
            1
        )
        parts.append(part)
    return np.concatenate(parts)


def _write_part(folder: Path, part: int, whole: Whole, places: Sequence[NDArray[np.intp]]) -> None:
    """Writes the files of a source; ``places`` are those of the pairs of each corpus."""
    with ExitStack() as stack:

        def new(name: str) -> list[IO[bytes]]:
            return [stack.enter_context(path.open("wb")) for path in _files(folder, name)]

        held_out = {_SPLITS.index(split) + 1: new(f"{split}-{part}") for split in whole.sizes}
        for corpus, (pair, own) in enumerate(zip(whole.corpora, places, strict=True)):
            outputs, begin = {0: new(f"train-{part}-{corpus}"), **held_out}, 0
            for chunk in read_raw(*pair):
                if chunk.number == 1:
                    chunk.src[0], chunk.tgt[0] = (side[0].removeprefix(BOM_UTF8) for side in (chunk.src, chunk.tgt))
                end = begin + len(chunk.src)
                for place, *lines in zip(own[begin:end].tolist(), chunk.src, chunk.tgt, strict=True):
                    for output, line in zip(outputs.get(place, ()), lines, strict=False):
                        output.write(line + b"\n")
                begin = end
    for corpus, (links, own) in enumerate(zip(whole.links, places, strict=False)):
        kept, left_out = (np.flatnonzero(mask) + 1 for mask in (own == 0, own != 0))
        path = folder / f"train-{part}-{corpus}"
        write_lines(path.with_suffix(".links"), (line for _, line in lines_of_links(links, kept.tolist(), len(own))))
        write_lines(path.with_suffix(LEFT_OUT), map(str, left_out.tolist()))  # line numbers, for messages
    counts = np.bincount(np.concatenate(places), minlength=_NOWHERE + 1).tolist()
    for split, size in whole.sizes.items():
        _log.info("%s.%s=%s: %d pairs, no longer in training", whole.key, split, size, counts[_SPLITS.index(split) + 1])
    if counts[_NOWHERE]:
        _log.info("%s: %d pairs left out, which share a sentence with held-out pairs", whole.key, counts[_NOWHERE])


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"
