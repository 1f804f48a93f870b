"""The user's own files."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softsearch.data.sources.base import FilePair, ParallelSource, TextForm
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.checks import require_choice

_PACKED = (".gz", ".xz")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parallel(ParallelSource):
    """Files that are there already: plain, gzip or xz, one sentence per line.

    Args:
        train: the source and the target file to train on.
        val: the files to validate on.
        test: the files to test on, if any; without them :meth:`files` has no split ``test``.
        src_lang: the source language; by default the suffix of the source training file (``news.en.gz`` is ``en``).
        tgt_lang: the target language; by default the suffix of the target training file.
        text_form: ``lc_tok`` when the files are lower-cased and tokenised already, else ``plain``.

    Raises:
        ConfigError: a value is of the wrong type, or a language is neither given nor a suffix.
    """

    train: Sequence[str | Path]
    val: Sequence[str | Path]
    test: Sequence[str | Path] | None = None
    src_lang: str = ""
    tgt_lang: str = ""
    text_form: TextForm = "plain"

    def __post_init__(self) -> None:
        """Checks the options and fills the languages in."""
        super().__post_init__()
        require_choice("data.text_form", self.text_form, ("plain", "lc_tok"))
        for split, pair in self._pairs().items():
            if not _is_pair(pair):
                raise ConfigError(
                    f"data.{split} is {pair!r}, expected two file names; write data.{split}='[text.en,text.de]'"
                )
        suffixes = [_language_suffix(path) for path in self.train]
        for key, suffix in zip(("src_lang", "tgt_lang"), suffixes, strict=True):
            object.__setattr__(self, key, _language(key, getattr(self, key), suffix))
        if suffixes == [self.tgt_lang, self.src_lang] and self.src_lang != self.tgt_lang:
            _log.warning("data.train is %s for %s to %s; swapped?", list(self.train), self.src_lang, self.tgt_lang)

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files as given; ``cache_dir`` is not used.

        Raises:
            CorpusError: a file does not exist.
        """
        found = {split: (Path(pair[0]), Path(pair[1])) for split, pair in self._pairs().items()}
        for split, pair in found.items():
            for path in pair:
                if not path.is_file():
                    raise CorpusError(f"data.{split} names {path}, which is no file; change data.{split}")
        return found

    def _pairs(self) -> dict[str, Sequence[str | Path]]:
        required: dict[str, Sequence[str | Path]] = {"train": self.train, "val": self.val}
        return required if self.test is None else {**required, "test": self.test}


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(path, str | Path) for path in value)


def _language_suffix(path: str | Path) -> str:
    name = Path(path)
    return (name.with_suffix("") if name.suffix in _PACKED else name).suffix.removeprefix(".")


def _language(key: str, given: object, suffix: str) -> str:
    language = given or suffix
    if not isinstance(language, str) or not language:
        raise ConfigError(f"data.{key} is {given!r} and the training file has no suffix for it; set data.{key}=CODE")
    return language
