"""Translation data sets of Hugging Face's datasets, from a folder or from the hub at a pinned revision."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, refuse_unread
from softsearch.data.corpora.held_out import HeldOut, Whole, divide
from softsearch.data.corpora.rows import Pair, read_mappings
from softsearch.data.corpora.table import files_of_rows
from softsearch.data.preparation.digests import digest_of
from softsearch.errors import ConfigError, CorpusError, parsing
from softsearch.process import how_to_install
from softsearch.text.corpus import open_text
from softsearch.text.filters import NO_FILTERS, Filters
from softsearch.text.plain_values import nested_values, read_json

_FORMAT = 1
_COMMIT = re.compile("[0-9a-f]{40}")
_DESCRIPTIONS = ("dataset_dict.json", "state.json")  # written by save_to_disk
_CARDS = ("README.md", ".huggingface.yaml")  # files in which a folder describes its data
_MAX_VALUES = 100_000  # in a description
_LINE_FORMATS = (".csv", ".json", ".jsonl", ".tsv", ".txt")
_MAX_LINE = 256 << 20  # bytes; datasets holds a line in memory several times
_READERS = ("arrow", "csv", "json", "parquet", "text")  # readers in datasets; others unpickle, or do not read text


@dataclass(frozen=True, kw_only=True)
class HuggingFace(ParallelSource):
    """A data set, written row by row to text files in the cache, without a copy in datasets' own cache.

    No code from a data set is run: datasets has not run any since version 4, and only plain formats are read. A data
    set may only use its own files: a description that names an address or a file elsewhere is refused.

    Args:
        root: a folder, written by ``save_to_disk`` or with files of Parquet, Arrow, JSON, CSV or text.
        hub: the data set's name on the hub, such as ``Helsinki-NLP/opus-100``, instead of ``root``.
        revision: the commit of ``hub``, 40 hexadecimal digits.
        config: the name of the data set's configuration, such as ``de-en``.
        train: name of the split to train on.
        val: name of the validation split, or the number or share of rows to split off ``train``.
        test: like ``val``.
        src: the source column; ``translation.en`` for one inside a column of languages.
        tgt: the target column, like ``src``.
        src_lang: the source language; by default the last part of the column's name.
        tgt_lang: the target language, like ``src_lang``.
        text_form: ``lc_tok`` for text that is lower-cased and tokenised, otherwise ``plain``.

    Raises:
        ConfigError: ``root`` and ``hub`` are both set or both missing, or ``hub`` has no commit.
    """

    root: str | Path | None = None
    hub: str | None = None
    revision: str | None = None
    config: str | None = None
    train: str = "train"
    val: str | HeldOut = "validation"
    test: str | HeldOut | None = "test"
    src: str
    tgt: str
    text_form: TextForm = "plain"
    filters: Filters = NO_FILTERS

    def __post_init__(self) -> None:
        """Checks the options and fills in the languages."""
        if (self.root is None) == (self.hub is None):
            raise ConfigError(f"data.root and data.hub are {self.root} and {self.hub}, expected one of them; set one")
        if self.hub is not None and not _COMMIT.fullmatch(self.revision or ""):
            raise ConfigError(
                f"data.revision is {self.revision!r:.100}, expected the commit of {self.hub}, 40 hexadecimal digits; "
                "take it from the data set's page, Files and versions, History"
            )
        self._fill_in_languages([self.src.rpartition(".")[2]], [self.tgt.rpartition(".")[2]])

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files of lines in ``cache_dir``, written there if necessary.

        Raises:
            ConfigError: datasets is not installed, or there is no such column.
            CorpusError: the data set or a split does not exist, cannot be fetched, or holds no text.
        """
        files = self.undivided(cache_dir)
        [divided] = divide([Whole(self, [files["train"]])], cache_dir)
        return {**files, "train": divided.train[0], **divided.held_out}

    def undivided(self, cache_dir: Path) -> dict[str, FilePair]:
        content = self._content(cache_dir)
        found = {}
        for split, name in self._given_splits().items():
            identity = (_FORMAT, content, self.config, name, self.src, self.tgt)
            where = f"split {name} of {self.root or self.hub}"
            found[split] = files_of_rows(partial(self._rows, name, where), where, identity, cache_dir)
        return found

    def _content(self, cache_dir: Path) -> object:
        """Plain values that identify the data set's content."""
        if self.root is None:
            return self.hub, self.revision
        refuse_unread("root", self.root)
        root = Path(self.root)
        files = sorted(path for path in root.rglob("*") if not path.is_dir())
        if not files:
            raise CorpusError(f"data.root={root} is not a folder with files; change data.root, or set data.hub=NAME")
        for path in files:
            if not path.is_file():
                raise CorpusError(f"data.root={root} has {path.name!r:.100}, which is not a regular file; remove it")
            name = path.relative_to(root).as_posix()
            if "::" in name or not name.isprintable():  # addresses within addresses, of fsspec
                raise CorpusError(f"data.root={root} has a file named {name!r:.100}; rename it")
        return [(path.relative_to(root).as_posix(), digest_of(path, cache_dir)) for path in files]

    def _rows(self, split: str, where: str, _left_out: Counter[str]) -> Iterator[Pair]:
        if self.hub is not None:
            refuse_unread("hub", self.hub)
        try:
            from datasets import load_dataset_builder, load_from_disk
        except ImportError as error:
            raise ConfigError(f"data=huggingface needs datasets: {how_to_install('hf')}") from error
        # datasets passes on errors from all its readers and file systems
        with parsing(where, CorpusError, "check data"):
            rows: Any
            root = None if self.root is None else Path(self.root).resolve()
            if root is not None:
                _check_description(root)
                _check_lines(root)
            if root is not None and any((root / name).is_file() for name in _DESCRIPTIONS):
                saved = load_from_disk(str(root))
                splits = saved if isinstance(saved, dict) else {str(saved.split): saved}
                if split not in splits:
                    raise CorpusError(
                        f"{self.root} has no split {split!r}, found {', '.join(splits)}; set data.train, data.val and "
                        "data.test to names of splits"
                    )
                rows = splits[split].to_iterable_dataset()
            else:
                builder = load_dataset_builder(str(root or self.hub), self.config, revision=self.revision)
                _check_files(builder.config.data_files, "hf://datasets/" if root is None else f"{root}/")
                reader = type(builder).__module__.rpartition(".")[2]
                if reader not in _READERS:
                    raise CorpusError(
                        f"{self.root or self.hub} is {reader} data, expected one of {', '.join(_READERS)}; use "
                        "the data in another format"
                    )
                rows = builder.as_streaming_dataset(split)
            rows = rows.decode(False) if rows.features else rows  # pictures named in cells are not opened
            yield from read_mappings(rows, where, (self.src, self.tgt))


def _check_description(root: Path) -> None:
    """Refuses a description that names files elsewhere, before datasets looks for them.

    Raises:
        CorpusError: the description names files elsewhere.
        ValueError, OSError: it cannot be read.
    """
    from huggingface_hub import DatasetCard

    for card in (root / name for name in _CARDS):
        if card.is_file():
            text = card.read_text(encoding="utf-8")
            described = DatasetCard(text if card.name == _CARDS[0] else f"---\n{text}\n---\n").data.to_dict()
            _check_names(card, described.get("configs"), outside=lambda name: name.startswith(("/", "~")))
    for state in root.rglob("*.json"):
        if state.name in _DESCRIPTIONS:
            saved = read_json(state)
            files = [saved.get("_data_files"), saved.get("splits")] if isinstance(saved, dict) else saved
            _check_names(state, files, outside=lambda name: "/" in name or name == "..")


def _check_names(path: Path, described: object, outside: Callable[[str], bool]) -> None:
    for name in nested_values(described, _MAX_VALUES):
        if isinstance(name, str) and ("://" in name or "::" in name or ".." in Path(name).parts or outside(name)):
            raise CorpusError(f"{path} names {name!r:.100}, expected files in its folder; remove it if you trust them")


def _check_files(files: Mapping[str, Sequence[str]] | None, home: str) -> None:
    """Refuses files elsewhere."""
    for name in (name for names in (files or {}).values() for name in names):
        if not str(name).startswith(home):
            raise CorpusError(f"the data set names {str(name)!r:.100}, expected its own files; check data")


def _check_lines(root: Path) -> None:
    """Refuses text files with a line that needs more memory than any sentence.

    Raises:
        CorpusError: a line is too long.
    """
    for path in sorted(root.rglob("*")):
        if not path.is_file() or not {*path.suffixes[-2:]}.intersection(_LINE_FORMATS) or path.suffix == ".zip":
            continue
        size = 0
        with open_text(path) as stream:
            while chunk := stream.read(1 << 20):
                size = len(chunk) - chunk.rfind(b"\n") - 1 + (size if b"\n" not in chunk else 0)
                if size > _MAX_LINE:
                    raise CorpusError(
                        f"{path} has a line of over {_MAX_LINE:,} bytes; expected one row per line, split it"
                    )
