"""Data that ``softsearch prepare`` has made elsewhere: token ids, without the text that they were made from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, UnreadPath, refuse_unread
from softsearch.data.corpora.weighted import WeightedSource
from softsearch.data.preparation.store import Store
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.vocabulary import FEATURE_TAG

DESCRIPTION = "source.json"  # in a folder of prepared data


def describe(source: ParallelSource) -> dict[str, object]:
    """Returns what training asks of a source besides its text, as plain values."""
    options = ("src_lang", "tgt_lang", "text_form", "reverse_source", "target_direction")
    return {**{key: getattr(source, key) for key in options}, "tags": list(source.tags)}


def text_files(folder: Path, split: str) -> FilePair:
    """Returns the files with the text of validation or test in a folder of prepared data."""
    return folder / f"{split}.src.txt", folder / f"{split}.tgt.txt"


@dataclass(frozen=True, kw_only=True)
class PreparedFolder(WeightedSource):
    """What ``softsearch prepare`` has made: a folder that it has named, with ``parts`` next to the folder, or a store.

    Languages and everything else that belongs to the text are those of the source that it was made from.

    Args:
        root: the folder, ``CACHE/prepared/NAME``; or a store, a folder or an address of fsspec, whose shards are copied
            to the cache when training needs them.
        text_form: that of the folder.
        tags: those of the folder.

    Raises:
        ConfigError: it is not such a folder, it was made from feature vectors, or the weights do not fit its corpora.
        CorpusError: a store cannot be reached or is damaged.
    """

    root: str | Path
    text_form: TextForm = "plain"
    tags: Sequence[str] = ()  # type: ignore[assignment]  # a tuple, once it is read

    def __post_init__(self) -> None:
        """Reads what the folder says of its text."""
        if isinstance(self.root, UnreadPath):
            return
        for key, value in self._read(DESCRIPTION).items():
            object.__setattr__(self, key, tuple(value) if key == "tags" else value)
        if FEATURE_TAG in self.tags:
            raise ConfigError(
                f"data.root={self.root} was prepared from feature vectors, which it does not have; name the files that "
                "it was prepared from"
            )
        if not isinstance(self.prepared, Store):
            self._check_weights("data.root", len(self._read("report.json")["corpora"]["train"]))
        elif self.weights is not None or self.temperature is not None:
            raise ConfigError(
                f"data.root={self.root} is a store, whose pairs have the weights that they were written with; leave "
                "data.weights and data.temperature out, or give them to softsearch prepare store=ADDRESS"
            )

    @cached_property  # the list of a store is read once
    def prepared(self) -> Path | Store:
        """The folder or the store."""
        refuse_unread("root", self.root)
        return Store(str(self.root)) if Store.is_at(self.root) else Path(self.root)

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files of validation and test, in the folder."""
        folder = self.prepared.folder(cache_dir) if isinstance(self.prepared, Store) else self.prepared
        pairs = {split: text_files(folder, split) for split in ("val", "test")}
        return {split: pair for split, pair in pairs.items() if pair[0].is_file()}

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Refuses: the folder has no training text."""
        raise CorpusError(
            f"data.root={self.root} has token ids, not the training text, which is needed here; name the files that it "
            "was prepared from"
        )

    def _read(self, name: str) -> dict[str, Any]:
        try:
            if isinstance(self.prepared, Store):
                _ = self.prepared.contents  # says best what is wrong
                return dict(json.loads(self.prepared.read(name)))
            found: dict[str, Any] = json.loads((self.prepared / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"data.root={self.root} is not a folder of prepared data: {name} cannot be read; set it to the "
                "folder that softsearch prepare has named, or to a store that it has written to the end (store=ADDRESS)"
            ) from error
        return found
