"""Data that ``softsearch prepare`` has made elsewhere: token ids, without the text that they were made from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, UnreadPath, refuse_unread
from softsearch.data.corpora.weighted import WeightedSource
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
    """A folder that ``softsearch prepare`` has named, with ``parts`` next to the folder that it is in.

    Languages and everything else that belongs to the text are those of the source that it was made from.

    Args:
        root: the folder, ``CACHE/prepared/NAME``.
        text_form: that of the folder.
        tags: those of the folder.

    Raises:
        ConfigError: it is not such a folder, it was made from feature vectors, or the weights do not fit its corpora.
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
        self._check_weights("data.root", len(self._read("report.json")["corpora"]["train"]))

    @property
    def prepared(self) -> Path:
        """The folder."""
        refuse_unread("root", self.root)
        return Path(self.root)

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files of validation and test, in the folder."""
        pairs = {split: text_files(self.prepared, split) for split in ("val", "test")}
        return {split: pair for split, pair in pairs.items() if pair[0].is_file()}

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Refuses: the folder has no training text."""
        raise CorpusError(
            f"data.root={self.root} has token ids, not the training text, which is needed here; name the files that it "
            "was prepared from"
        )

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.prepared / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"data.root={self.root} is not a folder of prepared data: {name} cannot be read; set it to the "
                "folder that softsearch prepare has named"
            ) from error
        return found
