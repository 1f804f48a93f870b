"""Whether the test set is in the training data of the systems that are tested on it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from omegaconf import DictConfig

from softsearch.app.config.instantiate import build
from softsearch.app.systems.test_set import HeldOutText
from softsearch.data.corpora.base import FilePair, ParallelSource
from softsearch.errors import CorpusError
from softsearch.evaluation.train_test_overlap import Overlap
from softsearch.runtime.system import System
from softsearch.text.corpus import Cleaner, read_raw

_KINDS = {
    "pair_exact": "source and reference",
    "source_exact": "source",
    "target_exact": "reference",
    "source_near": "near twin of the source",
    "target_near": "near twin of the reference",
}


def find_overlap(
    systems: Sequence[System], given: DictConfig | None, test: HeldOutText, cache_dir: Path
) -> tuple[dict[str, int], list[str]]:
    """Looks for the test sentences in the training data of each checkpoint.

    Args:
        systems: the systems, without ensembles.
        given: the ``data`` of the command line, of the same kind, read where a checkpoint's own files are gone.
        test: the test set.
        cache_dir: where made and downloaded files are.

    Returns:
        Counts by kind, none where nothing could be read, and warnings: of what was found and of what was not checked.
    """
    overlap, warnings, read = Overlap(test.sources, test.references), [], 0
    for names, source in _training_sources(systems):
        if source is None:
            warnings.append(f"{names}: not checked for test sentences in the training data, which a bundle lacks")
            continue
        try:
            _read(source, given, cache_dir, overlap)
        except CorpusError as error:
            warnings.append(f"{names}: not checked for test sentences in the training data: {error}")
        else:
            read += 1
    if not read:
        return {}, warnings
    counts = overlap.counts()
    if any(counts.values()):
        warnings.insert(0, _warning(counts, len(test.sources)))
    return {_KINDS[kind]: count for kind, count in counts.items()}, warnings


def _training_sources(systems: Sequence[System]) -> Iterator[tuple[str, ParallelSource | None]]:
    """The data of each checkpoint with the names of those that share it, and None with the names of the bundles."""
    different: list[ParallelSource | None] = []
    for system in systems:
        if system.source not in different:
            different.append(system.source)
    for source in different:
        yield ", ".join(system.name for system in systems if system.source == source), source


def _read(own: ParallelSource, given: DictConfig | None, cache_dir: Path, overlap: Overlap) -> None:
    source, files = _training_files(own, given, cache_dir)
    for src, tgt in files:
        clean = Cleaner(src=src, tgt=tgt, filters=source.dropped)
        for chunk in map(clean, read_raw(src, tgt)):
            overlap.add(chunk.src, chunk.tgt)


def _training_files(
    own: ParallelSource, given: DictConfig | None, cache_dir: Path
) -> tuple[ParallelSource, list[FilePair]]:
    try:
        return own, own.train_files(cache_dir)
    except CorpusError:
        source = build(given)
        if type(source) is not type(own):
            raise
        return source, source.train_files(cache_dir)


def _warning(counts: dict[str, int], sentences: int) -> str:
    found = [f"{count:,} by {_KINDS[kind]}" for kind, count in counts.items() if count]
    return f"of {sentences:,} test sentences the training data holds {', '.join(found)}; scores may be too good"
