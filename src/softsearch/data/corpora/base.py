"""What every source of parallel text offers."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from softsearch.errors import CorpusError
from softsearch.text.filters import Filters
from softsearch.text.option_checks import require_bool, require_choice

Split = Literal["train", "val", "test"]
TextForm = Literal["plain", "lc_tok"]
Direction = Literal["l2r", "r2l"]
FilePair = tuple[Path, Path]


@dataclass(frozen=True, kw_only=True)
class ParallelSource(ABC):
    """Parallel text in files, by split.

    Args:
        src_lang: the source language's code.
        tgt_lang: the target language's code.
        reverse_source: the model reads the source from its end to its start (Sutskever et al. 2014, section 3.3).
        target_direction: ``r2l``: the model writes the target from its end to its start.
    """

    src_lang: str
    tgt_lang: str
    reverse_source: bool = False
    target_direction: Direction = "l2r"

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            ConfigError: a value is of the wrong type or not one of its choices.
        """
        require_bool("data.reverse_source", self.reverse_source)
        require_choice("data.target_direction", self.target_direction, ("l2r", "r2l"))

    @property
    def reversed_sides(self) -> tuple[bool, bool]:
        """Whether the token ids of the source and of the target run backwards."""
        return self.reverse_source, self.target_direction == "r2l"

    @property
    def tags(self) -> tuple[str, ...]:
        """Words at the start of source lines that must be one piece each."""
        return ()

    @property
    def text_form(self) -> TextForm:
        """``plain`` text, or lower-cased and tokenised ``lc_tok`` text, whose BLEU is computed without tokenising."""
        return "plain"

    @property
    def dropped(self) -> Filters:
        """Which training pairs are dropped."""
        return Filters()

    def repeats(self, sizes: Sequence[int]) -> list[float]:
        """How often a pair of each training corpus is seen in an epoch, where they have so many pairs."""
        return [1.0] * len(sizes)

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the training corpora, which are read one after the other; raises as :meth:`files`."""
        return [self.files(cache_dir)["train"]]

    @abstractmethod
    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the source and the target file of each split, and makes or downloads what is missing.

        Of several training corpora this is the first; :meth:`train_files` has them all.

        Args:
            cache_dir: where made and downloaded files are kept; the same options find them there again.

        Raises:
            ConfigError: the options do not fit together.
            CorpusError: a file is missing or cannot be made.
        """


def text_sha256(path: Path) -> str:
    """The SHA-256 of a file of text.

    Raises:
        CorpusError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
