"""From text files to token ids on disk: once for each content, and never half-written."""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from softsearch.data.dataset import ParallelDataset, TokenStore
from softsearch.data.resampler import Resampler
from softsearch.data.sources.base import FilePair, ParallelSource
from softsearch.text.corpus import read_parallel
from softsearch.text.tokenizer import SentencePieceTokenizer, TokenizerTrainer

FORMAT = 1
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedData:
    """A folder of prepared data, named after the content that it was made of."""

    folder: Path
    src_tokenizer: SentencePieceTokenizer
    tgt_tokenizer: SentencePieceTokenizer

    @property
    def fingerprint(self) -> str:
        """Changes when a text, the tokenizer's options or the format changes."""
        return self.folder.name

    @property
    def splits(self) -> tuple[str, ...]:
        """What there is: train, val and perhaps test."""
        return tuple(json.loads((self.folder / "splits.json").read_text()))

    def line_number(self, split: str, index: int) -> int:
        """Where in the text files the pair ``index`` of ``split`` stands, from 1."""
        return int(np.load(self.folder / f"{split}.lines.npy", mmap_mode="r")[index])

    def dataset(self, split: str, resampler: Resampler | None = None) -> ParallelDataset:
        """The pairs of ``split``, in fresh segmentations where there is a ``resampler``."""
        src, tgt = (TokenStore(self.folder / f"{split}.{side}") for side in ("src", "tgt"))
        return ParallelDataset(src, tgt, resampler)


def prepare(source: ParallelSource, trainer: TokenizerTrainer, cache_dir: Path) -> PreparedData:
    """Trains the tokenizers on the training side and encodes all splits, unless that has been done before.

    Validation and test keep every line, so that outputs stay aligned with the files; training drops pairs with an empty
    side. Safe to call from several processes: the first to finish wins.

    Raises:
        CorpusError: a file is missing, damaged or not parallel.
    """
    files = source.files(cache_dir)
    folder = cache_dir / "prepared" / _fingerprint(source, files, trainer)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder.parent))
        try:
            _write(unfinished, source, files, trainer)
            _publish(unfinished, folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    src, tgt = (
        SentencePieceTokenizer((folder / f"{side}.model").read_bytes(), reverse=reverse)
        for side, reverse in zip(("src", "tgt"), source.reversed_sides, strict=True)
    )
    return PreparedData(folder, src, src if tgt.fingerprint == src.fingerprint else tgt)


def _fingerprint(source: ParallelSource, files: dict[str, FilePair], trainer: TokenizerTrainer) -> str:
    # Segmentations are drawn while training; what is stored is the same with and without.
    options = {name: value for name, value in asdict(trainer).items() if name != "sampling"}
    identity: list[object] = [FORMAT, options, list(files)]
    if any(source.reversed_sides) or source.tags:  # else as it was before there were such options
        identity += [source.reversed_sides, source.tags]
    digest = hashlib.sha256(json.dumps(identity).encode())
    for pair in files.values():
        for path in pair:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _write(folder: Path, source: ParallelSource, files: dict[str, FilePair], trainer: TokenizerTrainer) -> None:
    corpora = {split: read_parallel(*pair, keep_empty=split != "train") for split, pair in files.items()}
    for split, corpus in corpora.items():
        log.info("%s: %s", split, corpus.report.summary())
        np.save(folder / f"{split}.lines.npy", np.asarray(corpus.numbers, dtype=np.int64))
    trained = trainer.train(corpora["train"].src, corpora["train"].tgt, source.tags)
    for side, model, reverse in zip(("src", "tgt"), trained, source.reversed_sides, strict=True):
        tokenizer = SentencePieceTokenizer(model.model, reverse=reverse)
        (folder / f"{side}.model").write_bytes(tokenizer.model)
        for split, corpus in corpora.items():
            lines: Sequence[str] = getattr(corpus, side)
            TokenStore.write(folder / f"{split}.{side}", map(tokenizer.encode, lines), tokenizer.vocab_size)
    (folder / "splits.json").write_text(json.dumps(list(files)))


def _publish(unfinished: Path, folder: Path) -> None:
    """Renames the finished folder to its name; if another process was faster, its equal copy stays."""
    try:
        os.rename(unfinished, folder)
    except OSError:
        if not folder.is_dir():
            raise
