"""The text that a saved model was trained on."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.lexicon import shortlist_tables
from softsearch.runtime.system import Tokenizers
from softsearch.text.corpus import read_parallel


def read_training_text(source: ParallelSource, cache_dir: Path) -> list[tuple[str, str]]:
    """Returns the sentence pairs, the source and the target of each, as a run's data has them now.

    Raises:
        CorpusError: a file cannot be read.
    """
    files = source.train_files(cache_dir)
    corpora = [read_parallel(*pair, on_error=source.dropped.on_error) for pair in files]
    return [pair for corpus in corpora for pair in zip(corpus.src, corpus.tgt, strict=True)]


def training_shortlist(
    source: ParallelSource, tokenizers: Tokenizers, cache_dir: Path, *, frequent: int, translations: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Returns what a shortlist of the training text is made of, see :func:`softsearch.data.lexicon.shortlist_tables`.

    Raises:
        ConfigError: a number is of the wrong type or below 1.
        CorpusError: a file cannot be read.
    """
    sides = zip(*read_training_text(source, cache_dir), strict=True)
    src, tgt = (
        [np.asarray(tokenizer.encode(line)) for line in side] for tokenizer, side in zip(tokenizers, sides, strict=True)
    )
    size = tokenizers[0].vocab_size
    return shortlist_tables(src, tgt, src_vocab_size=size, frequent=frequent, translations=translations)
