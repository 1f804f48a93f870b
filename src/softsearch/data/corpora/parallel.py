"""Parallel text in the user's files."""

import glob
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated

from softsearch.data.corpora.base import FilePair, TextForm, UnreadPath, language_of, refuse_unread, require_file
from softsearch.data.corpora.held_out import Division, HeldOut, Whole, divide
from softsearch.data.corpora.rows import is_table
from softsearch.data.corpora.shards import is_pattern, shards
from softsearch.data.corpora.weighted import WeightedSource
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import PACKED
from softsearch.text.filters import NO_FILTERS, Filters

_Pair = Sequence[str | Path]
_Files = str | Path | _Pair  # a prefix, or two files
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parallel(WeightedSource):
    """Existing files: plain, gzip, xz, bzip2 or Zstandard, one sentence per line.

    A split is two files, or the common part of their names before ``.`` and the language, as in Moses: with
    ``src_lang`` and ``tgt_lang``, ``corpus/train`` is ``corpus/train.en`` and ``corpus/train.de``, or
    ``corpus/train.en.gz`` and so on. A training corpus may have many files, named by wildcards (``shards``).

    Args:
        train: the source and the target training file, or a list of such pairs for several corpora.
        val: files, or the number or share of pairs to hold out from the training text for validation
            (``divide``).
        test: like ``val``.
        src_lang: the source language; by default from the name of the source training file (``news.en.gz`` is ``en``).
        tgt_lang: the target language, like ``src_lang``.
        text_form: ``lc_tok`` for files that are lower-cased and tokenised, otherwise ``plain``.

    Raises:
        ConfigError: a value does not name two files, or the weights do not fit.
    """

    train: Annotated[
        _Files | Sequence[_Pair], "two files, such as '[train.en,train.de]', a list of such pairs, or a prefix"
    ]
    val: Annotated[_Files | HeldOut, "two files, such as '[val.en,val.de]', a prefix, or a number to split off: 2000"]
    test: Annotated[
        _Files | HeldOut | None, "two files, such as '[test.en,test.de]', a prefix, a number to split off, or null"
    ] = None
    text_form: TextForm = "plain"
    filters: Filters = NO_FILTERS

    def __post_init__(self) -> None:
        """Checks the options and fills in the languages."""
        for split, files in self._named():
            if isinstance(files, str | Path) and is_table(files):
                raise ConfigError(f"data.{split} is {files!r}, a table; write data=table data.src=1 data.tgt=2")
            if not (self.src_lang and self.tgt_lang if isinstance(files, str | Path) else is_pair(files)):
                raise ConfigError(
                    f"data.{split} is {files!r}, expected two file names, or a prefix of both with data.src_lang and "
                    f"data.tgt_lang; write data.{split}='[text.en,text.de]'"
                )
        first = self.corpora()[0]
        src, tgt = ("", "") if isinstance(first, str | Path) else map(language_of, first)
        self._fill_in_languages([src], [tgt])
        for split, pair in self._named():
            found = [] if isinstance(pair, str | Path) else list(pair)
            swapped = [language_of(path) for path in found] == [self.tgt_lang, self.src_lang]
            if swapped and self.src_lang != self.tgt_lang:
                _log.warning("data.%s is %s for %s to %s; swapped?", split, found, self.src_lang, self.tgt_lang)
        self._check_weights("data.train", len(self.corpora()))

    @property
    def has_one_pair(self) -> bool:
        corpora = self.corpora()
        return len(corpora) == 1 and not _has_pattern(corpora[0])

    def repeats(self, sizes: Sequence[int]) -> list[float]:
        counts = [len(self._shards(files)) if _has_pattern(files) else 1 for files in self.corpora()]
        ends = [*accumulate(counts)]
        whole = [sum(sizes[end - count : end]) for count, end in zip(counts, ends, strict=True)]
        return [repeat for repeat, count in zip(super().repeats(whole), counts, strict=True) for _ in range(count)]

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the given training corpora, or what remains of them after splitting.

        Raises:
            CorpusError: a file does not exist.
        """
        return self._divided(cache_dir).train

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the given files; pairs split off the training text are written to ``cache_dir``.

        Raises:
            CorpusError: a file does not exist.
        """
        divided = self._divided(cache_dir)
        return {**self.undivided(cache_dir), "train": divided.train[0], **divided.held_out}

    def undivided(self, cache_dir: Path) -> dict[str, FilePair]:
        given = {split: files for split, files in self._given_splits().items() if split != "train"}
        train = self._shards(self.corpora()[0])[0]
        return {"train": train, **{split: self._existing(split, files) for split, files in given.items()}}

    def _divided(self, cache_dir: Path) -> Division:
        corpora = [pair for files in self.corpora() for pair in self._shards(files)]
        return divide([Whole(self, corpora)], cache_dir)[0]

    def _shards(self, files: _Files) -> list[FilePair]:
        """Returns the files of a training corpus."""
        if not _has_pattern(files):
            return [self._existing("train", files)]
        if not isinstance(files, str | Path):
            return shards("data.train", files)
        return shards("data.train", [f"{files}.{language}" for language in (self.src_lang, self.tgt_lang)])

    def corpora(self) -> list[_Files]:
        """Returns the training files as given."""
        train = [self.train] if isinstance(self.train, str | Path) else list(self.train)
        several = train and all(isinstance(pair, list | tuple) for pair in train)
        return train if several else [self.train]  # type: ignore[return-value, list-item]

    def _named(self) -> list[tuple[str, _Files]]:
        """Returns the files of each split and training corpus with their keys."""
        held_out = {split: files for split, files in self._given_splits().items() if split != "train"}
        return [*(("train", files) for files in self.corpora()), *held_out.items()]

    def _existing(self, split: str, files: _Files) -> FilePair:
        if not isinstance(files, str | Path):
            return existing(split, files)
        refuse_unread(split, files)
        names = [f"{files}.{language}" for language in (self.src_lang, self.tgt_lang)]
        src, tgt = ([Path(f"{name}{end}") for end in ("", *PACKED) if Path(f"{name}{end}").is_file()] for name in names)
        if not (src and tgt):
            prefix = Path(files)
            there = sorted(path.name for path in prefix.parent.glob(f"{glob.escape(prefix.name)}.*"))
            raise CorpusError(
                f"data.{split}={files} needs {' and '.join(names)}, plain or with {', '.join(PACKED)}, found "
                f"{', '.join(there[:9]) or 'no such name'}; change data.{split}, data.src_lang or data.tgt_lang"
            )
        return src[0], tgt[0]


def _has_pattern(files: _Files) -> bool:
    """Tells whether a corpus has many files; those that only a checkpoint names are not looked for."""
    names = [files] if isinstance(files, str | Path) else files
    return any(is_pattern(name) for name in names if not isinstance(name, UnreadPath))


def existing(split: str, pair: Sequence[str | Path]) -> FilePair:
    """Returns the files of a split.

    Raises:
        CorpusError: one does not exist.
    """
    for path in pair:
        require_file(split, path)
    src, tgt = map(Path, pair)
    return src, tgt


def is_pair(value: object) -> bool:
    """Returns whether a value of the config names two files."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(path, str | Path) for path in value)
