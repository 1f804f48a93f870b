"""A folder of prepared data, and how its training corpora are mixed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.data.dataset import ParallelDataset, TokenStore
from softsearch.data.resampler import Resampler
from softsearch.text.tokenizer import SentencePieceTokenizer

REPORT = "report.json"


@dataclass(frozen=True)
class PreparedData:
    """A folder of prepared data, named after the content that it was made of.

    Args:
        folder: the folder.
        src_tokenizer: the source's tokenizer.
        tgt_tokenizer: the target's.
        repeats: how often a pair of each training corpus is seen in an epoch.
    """

    folder: Path
    src_tokenizer: SentencePieceTokenizer
    tgt_tokenizer: SentencePieceTokenizer
    repeats: tuple[float, ...] = (1.0,)

    @property
    def fingerprint(self) -> str:
        """Changes when a text, the tokenizer's options, how corpora are mixed or the format changes."""
        if not self._mixed:
            return self.folder.name
        return f"{self.folder.name}-{hashlib.sha256(json.dumps(self.repeats).encode()).hexdigest()[:8]}"

    @property
    def splits(self) -> tuple[str, ...]:
        """What there is: train, val and perhaps test."""
        return tuple(json.loads((self.folder / "splits.json").read_text()))

    def report(self) -> dict[str, Any]:
        """What was found in the text."""
        report: dict[str, Any] = json.loads((self.folder / REPORT).read_text(encoding="utf-8"))
        return report

    def dataset(self, split: str, resampler: Resampler | None = None) -> ParallelDataset:
        """The pairs of ``split``, in fresh segmentations where there is a ``resampler``."""
        rows = self._rows(split)
        src, tgt = (TokenStore(self.folder / f"{split}.{side}", rows) for side in ("src", "tgt"))
        return ParallelDataset(src, tgt, resampler)

    def place(self, split: str, index: int) -> tuple[int, int]:
        """Where the pair ``index`` of a dataset stands in the text: its corpus, from 0, and its line, from 1."""
        rows = self._rows(split)
        row = index if rows is None else int(rows[index])
        several = split == "train" and len(self.repeats) > 1
        corpus = int(np.searchsorted(np.cumsum(kept_pairs(self.folder)), row, side="right")) if several else 0
        return corpus, int(np.load(self.folder / f"{split}.lines.npy", mmap_mode="r")[row])

    @property
    def _mixed(self) -> bool:
        return any(repeat != 1 for repeat in self.repeats)

    def _rows(self, split: str) -> NDArray[np.integer] | None:
        """The pairs of an epoch, where they are not those of the files, each once."""
        if split != "train" or not self._mixed:
            return None
        parts, begin = [], 0
        for size, repeat in zip(kept_pairs(self.folder), self.repeats, strict=True):
            # Place k of an epoch has the pair k / repeat: what is left out or comes once more lies at equal distances.
            places = np.arange(max(1, int(size * repeat)))
            parts.append(begin + np.minimum(places / repeat, size - 1).astype(np.int64))
            begin += size
        return np.concatenate(parts).astype(np.int32 if begin < 2**31 else np.int64)


def kept_pairs(folder: Path) -> list[int]:
    """How many pairs each training corpus has in a folder of prepared data."""
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return [corpus["kept"] for corpus in report["corpora"]["train"]]
