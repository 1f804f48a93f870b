"""Prepared data: the datasets of a folder, and the mix of its training corpora."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.data.dataset import FeatureStore, LinkStore, MixedRows, ParallelDataset, Redraw, TokenStore
from softsearch.data.preparation.encode import LINKS, id_type, read_array
from softsearch.text.tokenizer import SentencePieceTokenizer

REPORT = "report.json"


@dataclass(frozen=True)
class PreparedData:
    """A folder of prepared data.

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
        if not self._mixed:
            return self.folder.name
        return f"{self.folder.name}-{hashlib.sha256(json.dumps(self.repeats).encode()).hexdigest()[:8]}"

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
        rows = self._rows(split)
        src, tgt = (
            TokenStore(self.folder / f"{split}.{side}", id_type(tokenizer.vocab_size), rows)
            for side, tokenizer in (("src", self.src_tokenizer), ("tgt", self.tgt_tokenizer))
        )
        features = None
        if split in self.features:
            lines = read_array(self.folder / f"{split}.lines", np.int64)
            lines = lines if rows is None else lines[rows[np.arange(len(rows))]]
            features = FeatureStore(self.features[split], lines - 1)
        links = None
        if split == "train" and (self.folder / f"{LINKS}.ids").exists():
            links = LinkStore(TokenStore(self.folder / LINKS, np.uint16, rows), self.src_tokenizer, self.tgt_tokenizer)
        return ParallelDataset(src, tgt, resampler, features, links)

    def locate(self, split: str, index: int) -> tuple[int, int]:
        """Returns the corpus (from 0) and the line in it (from 1) of the pair ``index`` of a dataset."""
        rows = self._rows(split)
        row = index if rows is None else int(rows[index])
        ends = np.cumsum(self.kept_pairs(split))
        line = read_array(self.folder / f"{split}.lines", np.int64)[row]
        return int(np.searchsorted(ends, row, side="right")), int(line)

    @property
    def _mixed(self) -> bool:
        return any(repeat != 1 for repeat in self.repeats)

    def _rows(self, split: str) -> MixedRows | None:
        """Returns the rows of an epoch; None if that is every row of the files once."""
        return MixedRows(self.kept_pairs("train"), self.repeats) if split == "train" and self._mixed else None
