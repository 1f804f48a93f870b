"""Parallel text in tables: one file per split, one column per language."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlparse

import pooch

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, UnreadPath, refuse_unread, require_file
from softsearch.data.corpora.held_out import Division, HeldOut, Whole, divide
from softsearch.data.corpora.rows import Pair, read_rows
from softsearch.data.corpora.separated import Column
from softsearch.data.corpora.shards import files_of, is_pattern
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digest_of
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.filters import NO_FILTERS, Filters

_FORMAT = 3
_SECONDS = 30  # timeout of a download
_SHA256 = re.compile("[0-9a-f]{64}")
_LINE_BREAK = re.compile("\r\n?|\n")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Table(ParallelSource):
    """TSV, CSV, JSON Lines, Parquet or TMX files, converted to two files of lines in the cache, once per content.

    A line break within a cell becomes a space.

    Args:
        train: the table to train on: a file, several with wildcards (``'corpus/*.parquet'``), or an address with its
            ``sha256``.
        val: the table to validate on, or the number or share of rows to split off ``train``.
        test: like ``val``.
        src: the source column: its name (``translation.en`` for a nested one; in TMX the language), or its number from
            1 in TSV and CSV without a header.
        tgt: the target column, like ``src``.
        separator: the character between cells of TSV and CSV, or ``tab``; by default it is found.
        sha256: digests by split; they are also checked for local files.
        src_lang: the source language; by default the last part of the column's name.
        tgt_lang: the target language, like ``src_lang``.
        text_form: ``lc_tok`` for text that is lower-cased and tokenised, otherwise ``plain``.

    Raises:
        ConfigError: only one column is a number, a digest is invalid, or an address has no digest.
    """

    train: str | Path
    val: str | Path | HeldOut
    test: str | Path | HeldOut | None = None
    src: Column
    tgt: Column
    separator: str | None = None
    sha256: Mapping[str, str | None] = field(default_factory=dict)
    text_form: TextForm = "plain"
    filters: Filters = NO_FILTERS

    def __post_init__(self) -> None:
        """Checks the options and fills in the languages."""
        if isinstance(self.src, int) != isinstance(self.tgt, int):
            raise ConfigError(f"data.src and data.tgt are {self.src} and {self.tgt}, expected two names or two numbers")
        if self.separator is not None and len(self._separator or "") != 1:
            raise ConfigError(f"data.separator is {self.separator!r:.60}, expected one character, or tab; change it")
        for split, path in self._given_splits().items():
            digest = self.sha256.get(split)
            if digest is None and _is_address(path):
                raise ConfigError(f"data.{split} is {path}, which needs its digest; set data.sha256.{split}=SHA256")
            if digest is not None and not _SHA256.fullmatch(digest):
                raise ConfigError(
                    f"data.sha256.{split} is {digest!r:.100}, expected 64 hexadecimal digits (sha256sum FILE)"
                )
        src, tgt = ("" if isinstance(column, int) else column.rpartition(".")[2] for column in (self.src, self.tgt))
        self._fill_in_languages([src], [tgt])

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files of lines in ``cache_dir``, written there if necessary.

        Raises:
            CorpusError: a table does not exist, is damaged, differs from its digest, or cannot be fetched.
            ConfigError: a table has no such column, or is of an unsupported kind.
        """
        divided = self._divided(cache_dir)
        return {**self.undivided(cache_dir), "train": divided.train[0], **divided.held_out}

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the lines of each training table; raises as ``files``."""
        return self._divided(cache_dir).train

    @property
    def has_one_pair(self) -> bool:
        return len(self._tables()) == 1

    def undivided(self, cache_dir: Path) -> dict[str, FilePair]:
        first = {**self._given_splits(), "train": self._tables()[0]}
        return {split: self._lines(split, path, cache_dir) for split, path in first.items()}

    def _divided(self, cache_dir: Path) -> Division:
        whole = Whole(self, [self._lines("train", path, cache_dir) for path in self._tables()])
        return divide([whole], cache_dir)[0]

    def _tables(self) -> list[str | Path]:
        """Returns the training tables; an address has no wildcards."""
        if isinstance(self.train, UnreadPath) or _is_address(self.train) or not is_pattern(self.train):
            return [self.train]
        return [*files_of(self.train).values()] or [self.train]

    def _lines(self, split: str, path: str | Path, cache_dir: Path) -> FilePair:
        table, name = self._local(split, path, cache_dir), urlparse(str(path)).path
        identity = (_FORMAT, digest_of(table, cache_dir), self.src, self.tgt, self.separator, Path(path).suffixes)
        rows = partial(read_rows, table, name, (self.src, self.tgt), separator=self._separator)
        return files_of_rows(rows, str(table), identity, cache_dir)

    @property
    def _separator(self) -> str | None:
        return "\t" if self.separator in ("tab", "\\t") else self.separator

    def _local(self, split: str, path: str | Path, cache_dir: Path) -> Path:
        """Returns the file of a split, checked, and downloaded if it is not in the cache."""
        digest, table = self.sha256.get(split), Path(path)
        if _is_address(path):
            table = cache_dir / "downloads" / str(digest)
            if not table.is_file():
                refuse_unread(split, path)
                try:
                    fetch = pooch.HTTPDownloader(timeout=_SECONDS)
                    pooch.retrieve(str(path), f"sha256:{digest}", table.name, table.parent, downloader=fetch)
                except (OSError, ValueError) as error:  # no connection, no such file, no room; or a wrong hash
                    raise CorpusError(
                        f"cannot fetch data.{split}={path}: {error}; check the address and data.sha256.{split}"
                    ) from error
        else:
            require_file(split, path)
        if digest not in (None, found := digest_of(table, cache_dir)):
            raise CorpusError(f"data.{split}={path} has the SHA-256 {found}, expected {digest}; get the file again")
        return table


def files_of_rows(
    rows: Callable[[Counter[str]], Iterable[Pair]], name: str, identity: object, cache_dir: Path
) -> FilePair:
    """Returns the files of the lines of ``rows`` in ``cache_dir``, written there if necessary.

    Args:
        rows: starts reading pairs of cells; it counts rows that it leaves out, by reason.
        name: name of the table, for messages.
        identity: plain values that determine the rows.
        cache_dir: folder for the files.

    Raises:
        CorpusError: there are no rows, or ``rows`` raises it.
    """

    def write(folder: Path) -> None:
        broken = count = 0
        left_out = Counter[str]()
        with (folder / "src").open("wb") as src, (folder / "tgt").open("wb") as tgt:
            for cells in rows(left_out):
                lines = [_LINE_BREAK.sub(" ", cell) for cell in cells]
                broken += tuple(lines) != cells
                count += 1
                src.write(f"{lines[0]}\n".encode())
                tgt.write(f"{lines[1]}\n".encode())
        others = "".join(f"; {number:,} {reason} left out" for reason, number in left_out.items())
        if not count:
            raise CorpusError(f"{name} has no rows{others}; expected one per sentence pair")
        _log.info("%s: %d rows; %d with line breaks inside, now spaces%s", name, count, broken, others)

    folder = made_folder(cache_dir, "table", repr(identity), write)
    return folder / "src", folder / "tgt"


def _is_address(path: str | Path) -> bool:
    return str(path).startswith(("http://", "https://"))
