"""Parallel text in the user's own files."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from softsearch.data.corpora.base import FilePair, TextForm, WeightedSource, language_of, refuse_unread
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.filters import NO_FILTERS, Filters

_Pair = Sequence[str | Path]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parallel(WeightedSource):
    """Existing files: plain, gzip or xz, one sentence per line.

    Args:
        train: the source and the target training file, or a list of such pairs for several corpora.
        src_lang: the source language; by default by the name of the source training file (``news.en.gz`` is ``en``).
        tgt_lang: the target language, likewise.
        text_form: ``lc_tok`` for files that are lower-cased and tokenised, else ``plain``.

    Raises:
        ConfigError: a value does not name two files, or the weights do not fit.
    """

    train: Annotated[_Pair | Sequence[_Pair], "two files, as in '[train.en,train.de]', or a list of such pairs"]
    val: Annotated[_Pair, "two files, as in '[val.en,val.de]'"]
    test: Annotated[_Pair | None, "two files, as in '[test.en,test.de]', or null"] = None
    text_form: TextForm = "plain"
    filters: Filters = NO_FILTERS

    def __post_init__(self) -> None:
        """Checks the options and fills in the languages."""
        for split, pair in self._named():
            if not is_pair(pair):
                raise ConfigError(
                    f"data.{split} is {pair!r}, expected two file names; write data.{split}='[text.en,text.de]'"
                )
        src, tgt = map(language_of, self.corpora()[0])
        self._fill_in_languages([src], [tgt])
        for split, pair in self._named():
            found = [language_of(path) for path in pair]
            if found == [self.tgt_lang, self.src_lang] and self.src_lang != self.tgt_lang:
                _log.warning("data.%s is %s for %s to %s; swapped?", split, list(pair), self.src_lang, self.tgt_lang)
        self._check_weights("data.train", len(self.corpora()))

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the training corpora as given.

        Raises:
            CorpusError: a file does not exist.
        """
        return [existing("train", pair) for pair in self.corpora()]

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files as given; ``cache_dir`` is not used.

        Raises:
            CorpusError: a file does not exist.
        """
        pairs = {"train": self.corpora()[0], "val": self.val}
        if self.test is not None:
            pairs["test"] = self.test
        return {split: existing(split, pair) for split, pair in pairs.items()}

    def corpora(self) -> list[Sequence[str | Path]]:
        """Returns the pairs of training files as given."""
        several = self.train and all(isinstance(pair, list | tuple) for pair in self.train)
        return list(self.train) if several else [self.train]  # type: ignore[arg-type, list-item]

    def _named(self) -> list[tuple[str, Sequence[str | Path]]]:
        """Returns every pair of files with its key."""
        test = [] if self.test is None else [("test", self.test)]
        return [*(("train", pair) for pair in self.corpora()), ("val", self.val), *test]


def existing(split: str, pair: Sequence[str | Path]) -> FilePair:
    """Returns the files of a split.

    Raises:
        CorpusError: one does not exist.
    """
    for path in pair:
        refuse_unread(split, path)
    src, tgt = map(Path, pair)
    for path in (src, tgt):
        if not path.is_file():
            raise CorpusError(f"data.{split} names {path}, which is no file; change data.{split}")
    return src, tgt


def is_pair(value: object) -> bool:
    """Returns whether a value of the config names two files."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(path, str | Path) for path in value)
