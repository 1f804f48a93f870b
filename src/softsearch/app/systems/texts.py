"""Reads the test sets named by options, and the training text of checkpoints."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from softsearch.app.config.options import Systems
from softsearch.app.config.validation import build
from softsearch.data.corpora.base import ParallelSource, language_of
from softsearch.data.lexicon import shortlist_tables
from softsearch.errors import ConfigError, CorpusError
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText, read_split
from softsearch.text.corpus import read_lines
from softsearch.text.features import feature_lines, read_features
from softsearch.text.filters import CorpusStream, read_parallel
from softsearch.text.joint_sources import join_sources
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import SOURCE_SEPARATOR

_SHORTLIST_PAIRS = 200_000  # as for links between words
Item = TypeVar("Item")


def read_test_set(
    options: Systems, files: tuple[Path, ...] | None, systems: Sequence[LabSystem], named: str = "test='[x.en,x.de]'"
) -> HeldOutText:
    """Reads ``files`` (sources, references), or else a split of the data in the options or of the first checkpoint.

    ``named`` is the option that names the files, for messages.

    Raises:
        ConfigError: neither the options nor a checkpoint name any text, or files are missing.
        CorpusError: the text cannot be read, or the data has no such split.
    """
    source: ParallelSource | None = build(options.data)
    source = source or next((system.source for system in systems if system.source), None)
    if files is not None:
        text = read_files(files, source or next(iter(systems), None), named)
    elif source is None:
        what = "a bundle does not say what to test it on" if systems else "hyp does not say what was translated"
        raise ConfigError(f"{what}; set data=... or {named}")
    else:
        text = read_split(source, options.split, options.cache_dir, f"set split or {named}")
    return text.joined(systems[0].tokenizers[1]) if systems else text


def read_files(files: tuple[Path, ...], described: ParallelSource | LabSystem | None, named: str) -> HeldOutText:
    """Reads files of sources and references in the text form of ``described``.

    Several files of sources are joined line by line, as in ``softsearch.text.joint_sources``. The languages are
    those in the file names, or else those of ``described``. Without ``described`` text is plain.

    Raises:
        ConfigError: files are missing, or do not suit a model that reads feature vectors.
        CorpusError: a file cannot be read.
    """
    option, features = named.partition("=")[0], None
    if len(files) < 2:
        raise ConfigError(
            f"{option} has {len(files)} files, expected one of sources and one of references, as in {named}"
        )
    if not isinstance(described, ParallelSource) or not described.has_features:
        corpora = [read_parallel(path, files[-1], keep_empty=True) for path in files[:-1]]
        sources = [join_sources(lines) for lines in zip(*(corpus.src for corpus in corpora), strict=True)]
        references = corpora[0].tgt
    elif SOURCE_SEPARATOR in described.tags or len(files) > 2:
        raise ConfigError(
            f"the model reads feature vectors, and {option}=... has only text files or only vectors; give vectors "
            "and text as data.sources with split=test"
        )
    else:
        features = read_features(files[0])
        sources, references = list(feature_lines(features)), list(read_lines(files[1]))
        if len(references) != len(features):
            raise CorpusError(
                f"{files[0]} has {len(features)} examples and {files[1]} has {len(references)} lines, expected one "
                "line for each example; give files that match"
            )
    *src_langs, tgt_lang = map(language_of, files)
    usual = (described.src_lang, described.tgt_lang) if described else ("", "")
    languages = "+".join(src_langs) if all(src_langs) else usual[0], tgt_lang or usual[1]
    name = ", ".join(path.name for path in files)
    text_form = described.text_form if described else "plain"
    text = HeldOutText(name, sources, references, text_form, *languages, features)
    return replace(text, draw=described.picture) if isinstance(described, ParallelSource) else text


def read_training_text(source: ParallelSource, cache_dir: Path) -> Iterator[tuple[str, str]]:
    """Yields the sentence pairs of a run's data, as the files are now.

    Raises:
        CorpusError: a file cannot be read.
    """
    for files in source.train_files(cache_dir):
        yield from CorpusStream(*files, on_error=source.filters.on_error).pairs()


def evenly(items: Iterable[Item], most: int) -> list[Item]:
    """Returns all items, or one of every 2, 4, 8, ..., so that there are at most ``most``; reads them once."""
    kept, step = list[Item](), 1
    for index, item in enumerate(items):
        if index % step == 0:
            kept.append(item)
            if len(kept) > most:
                del kept[1::2]
                step *= 2
    return kept


def training_shortlist(
    source: ParallelSource, tokenizers: Tokenizers, cache_dir: Path, frequent: int, translations: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Computes a shortlist from the training text (``softsearch.data.lexicon.shortlist_tables``).

    At most 200,000 pairs are used, at equal distances.

    Raises:
        ConfigError: a number has the wrong type or is below 1.
        CorpusError: a file cannot be read.
    """
    sides = zip(*evenly(read_training_text(source, cache_dir), _SHORTLIST_PAIRS), strict=True)
    src, tgt = (
        [np.asarray(tokenizer.encode(line)) for line in side] for tokenizer, side in zip(tokenizers, sides, strict=True)
    )
    size = tokenizers[0].vocab_size
    return shortlist_tables(src, tgt, src_vocab_size=size, frequent=frequent, translations=translations)
