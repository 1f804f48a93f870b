"""The source of a checkpoint whose class may not be imported."""

from dataclasses import dataclass
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm
from softsearch.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class UnbuiltSource(ParallelSource):
    """A source whose class was not built: it has languages, a text form and tags, but cannot be read.

    Args:
        refusal: the reason, for the error.
    """

    refusal: str
    text_form: TextForm = "plain"
    tags: tuple[str, ...] = ()
    has_features: bool = False

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Refuses: the class was not built."""
        raise CorpusError(self.refusal)

    def features(self, cache_dir: Path) -> dict[str, Path]:
        """Refuses: the class was not built."""
        raise CorpusError(self.refusal)
