"""Prepared data: the datasets of a list of parts, and the mix of its training corpora."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.dataset import FeatureStore, LinkStore, MixedRows, ParallelDataset, Redraw, Rows, TokenStore
from softsearch.data.preparation.cache_folder import PARTS, damage
from softsearch.data.preparation.encode import LINES, LINKS, SIDES, id_type, read_array
from softsearch.data.preparation.store import Shards, Store
from softsearch.data.sampler import ShardRows
from softsearch.data.sentencepiece_file import with_folding
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers

REPORT = "report.json"
INDEX = "parts.json"
ROWS = "rows"  # suffix of a split's file of pairs that are not dropped, if any are


class Part(NamedTuple):
    """A part of a split.

    Attributes:
        name: its folder of token ids.
        corpus: the number of its corpus in the split.
        pairs: its pairs, including those that are dropped.
    """

    name: str
    corpus: int
    pairs: int


@dataclass(frozen=True)
class PreparedData:
    """A folder that lists parts of prepared data.

    Args:
        folder: folder, named after the content that it was made from.
        repeats: how often each training corpus's pairs are seen in an epoch.
        features: the file of each split's feature vectors, if the data has them.
    """

    folder: Path
    src_tokenizer: SentencePieceTokenizer
    tgt_tokenizer: SentencePieceTokenizer
    repeats: tuple[float, ...] = (1.0,)
    features: Mapping[str, Path] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Hash of the text, the tokenizer's options, the mix of corpora and the format."""
        name = self.folder.name.partition(".")[0]
        if not self._mixed:
            return name
        return f"{name}-{hashlib.sha256(json.dumps(self.repeats).encode()).hexdigest()[:8]}"

    @property
    def splits(self) -> tuple[str, ...]:
        """``train``, ``val`` and, if there is one, ``test``."""
        return tuple(self.report()["corpora"])

    def report(self) -> dict[str, Any]:
        """Returns the findings in the text."""
        report: dict[str, Any] = json.loads((self.folder / REPORT).read_text(encoding="utf-8"))
        return report

    def kept_pairs(self, split: str) -> list[int]:
        """Returns the number of pairs in each corpus of ``split``."""
        return [corpus["kept"] for corpus in self.report()["corpora"][split]]

    def dataset(self, split: str, resampler: Redraw | None = None) -> ParallelDataset:
        """Returns the pairs of ``split``; a ``resampler`` redraws them in each epoch."""
        folders, rows = [folder for folder, _ in self._parts(split)], self._rows(split)
        src, tgt = (
            TokenStore.of_files([folder / side for folder in folders], id_type(tokenizer.vocab_size), rows)
            for side, tokenizer in zip(SIDES, (self.src_tokenizer, self.tgt_tokenizer), strict=True)
        )
        features = links = None
        if split in self.features:
            lines = np.concatenate([read_array(folder / LINES, np.int64) for folder in folders])
            lines = lines if rows is None else lines[rows[np.arange(len(rows))]]
            features = FeatureStore(self.features[split], lines - 1)
        if split == "train" and (self.folder / f"{LINKS}.ids").exists():
            rows = self._mixed_rows(None)  # none of dropped pairs
            numbers = TokenStore.of_files([self.folder / LINKS], np.uint16, rows)
            links = LinkStore(numbers, self.src_tokenizer, self.tgt_tokenizer)
        return ParallelDataset(src, tgt, resampler, features, links)

    def describe(self, split: str, index: int) -> str:
        """Returns the source file and the line of the pair ``index`` of a dataset, for messages."""
        corpus, line = self.locate(split, index)
        return f"{self.report()['corpora'][split][corpus]['src']}:{line}"

    def locate(self, split: str, index: int) -> tuple[int, int]:
        """Returns the corpus (from 0) and the line in it (from 1) of the pair ``index`` of a dataset."""
        rows = self._rows(split)
        row = index if rows is None else int(rows[index])
        for folder, part in self._parts(split):
            if row < part.pairs:
                return part.corpus, int(read_array(folder / LINES, np.int64)[row])
            row -= part.pairs
        raise IndexError(index)

    def _parts(self, split: str) -> list[tuple[Path, Part]]:
        return [(_beside(self.folder, part), part) for part in _index(self.folder)[split]]

    @property
    def _mixed(self) -> bool:
        return any(repeat != 1 for repeat in self.repeats)

    def _rows(self, split: str) -> Rows | None:
        """Returns the rows of an epoch in the parts; None if that is every row once."""
        path = self.folder / f"{split}.{ROWS}"
        kept = read_array(path, np.int64) if path.exists() else None
        return self._mixed_rows(kept) if split == "train" else kept

    def _mixed_rows(self, kept: NDArray[np.int64] | None) -> Rows | None:
        return MixedRows(self.kept_pairs("train"), self.repeats, kept) if self._mixed else kept


@dataclass(frozen=True)
class StoredData(PreparedData):
    """Prepared data in a store, whose training pairs are in shards.

    Args:
        store: the store; ``folder`` has its other files.
        cache_dir: where shards are copied to.
    """

    store: Store = field(kw_only=True)
    cache_dir: Path = field(kw_only=True)

    @property
    def fingerprint(self) -> str:
        return self.store.contents.fingerprint

    def dataset(self, split: str, resampler: Redraw | None = None) -> ParallelDataset:
        shards = Shards(self.store, split, self.cache_dir)
        rows = ShardRows(shards.pairs) if len(shards) > 1 else None
        src, tgt, *others = (
            TokenStore(shards.column(number), shards.pairs, kind, rows) for number, kind in enumerate(shards.types)
        )
        links = LinkStore(others[0], self.src_tokenizer, self.tgt_tokenizer) if others else None
        return ParallelDataset(src, tgt, resampler, None, links, shards)

    def describe(self, split: str, index: int) -> str:
        return f"{self.store.address}: pair {index + 1:,} of {split}"


def is_intact(folder: Path) -> bool:
    """Tells whether a folder of prepared data is there, with its parts, undamaged."""
    if damage(folder) is not None:
        return False
    parts = chain.from_iterable(_index(folder).values())
    return all(damage(_beside(folder, part)) is None for part in parts)


def read_tokenizers(folder: Path, reversed_sides: tuple[bool, bool]) -> Tokenizers:
    """Returns the tokenizers in a folder, the same object twice if both are alike."""
    src, tgt = (
        SentencePieceTokenizer(with_folding((folder / f"{side}.model").read_bytes()), reverse=reverse)
        for side, reverse in zip(SIDES, reversed_sides, strict=True)
    )
    return src, src if tgt.fingerprint == src.fingerprint else tgt


def _index(folder: Path) -> dict[str, list[Part]]:
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return {split: [Part(*part) for part in parts] for split, parts in index.items()}


def _beside(folder: Path, part: Part) -> Path:
    """Returns the folder of a part."""
    return folder.parents[1] / PARTS / part.name
