"""Translation from several sources: their lines side by side (Zoph & Knight 2016), feature vectors first."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm, is_size
from softsearch.data.corpora.multilingual import check_parts
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digests_of
from softsearch.errors import ConfigError, CorpusError
from softsearch.text.filters import CorpusStream
from softsearch.text.joint_sources import join_sources
from softsearch.text.vocabulary import FEATURE_TAG, SOURCE_SEPARATOR

_FORMAT = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MultiSource(ParallelSource):
    """Several sources with the same target, with their lines joined side by side: ``a man <and> un homme``.

    The tag is one piece of the vocabulary, and lines to translate have the same form (arXiv:1601.00710). The first
    source may be feature vectors. ``src_lang`` names all languages, such as ``en+fr``.

    Raises:
        ConfigError: there are fewer than two sources, or they do not match.
    """

    sources: Mapping[str, ParallelSource]

    def __post_init__(self) -> None:
        """Checks the options."""
        if len(self.sources) < 2:
            raise ConfigError(
                f"data.sources has {list(self.sources)}, expected at least two named sources, as in "
                "configs/data/multi_source.yaml"
            )
        check_parts("data.sources", self.sources, tags=(FEATURE_TAG,))
        if later := [name for name, source in [*self.sources.items()][1:] if source.has_features]:
            raise ConfigError(
                f"data.sources.{later[0]} is feature vectors, expected them only in the first source; change the "
                "order, or join all vectors of an example in one file"
            )
        for name, source in self.sources.items():
            for split in ("val", "test"):
                if is_size(size := getattr(source, split, None)):
                    raise ConfigError(
                        f"data.sources.{name}.{split} is {size}, but all sources hold out the same lines, and each "
                        "would choose its own; name files"
                    )
        if self.has_features and self.reverse_source:
            raise ConfigError("data.reverse_source is for text, but a source is feature vectors; set it to false")
        sources = self.sources.values()
        self._fill_in_languages((part.src_lang for part in sources), (part.tgt_lang for part in sources))

    @property
    def text_form(self) -> TextForm:
        return self._first.text_form

    @property
    def tags(self) -> tuple[str, ...]:
        return (SOURCE_SEPARATOR, *self._first.tags)

    @property
    def has_features(self) -> bool:
        return self._first.has_features

    def features(self, cache_dir: Path) -> dict[str, Path]:
        return self._first.features(cache_dir)

    @property
    def _first(self) -> ParallelSource:
        return next(iter(self.sources.values()))

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the joined files in ``cache_dir``, written if necessary, for splits that all sources have.

        Raises:
            CorpusError: a file cannot be read, the sources have different targets, a line already contains the tag, or
                ``cache_dir`` cannot be written.
        """
        parts = [source.files(cache_dir) for source in self.sources.values()]
        splits = [split for split in parts[0] if all(split in files for files in parts)]
        contents = [(split, *digests_of(files[split], cache_dir)) for files in parts for split in splits]

        def write(folder: Path) -> None:
            for split in splits:
                _join(folder, split, [files[split] for files in parts])

        folder = made_folder(cache_dir, "multi-source", repr((_FORMAT, contents)), write)
        return {split: (folder / f"{split}.src", folder / f"{split}.tgt") for split in splits}


def _join(folder: Path, split: str, pairs: list[FilePair]) -> None:
    """Writes all lines of a split's files; preparation drops blank ones."""
    corpora = [CorpusStream(*pair, keep_empty=True) for pair in pairs]
    streams = [corpus.pairs() for corpus in corpora]
    with (folder / f"{split}.src").open("wb") as src, (folder / f"{split}.tgt").open("wb") as tgt:
        for number, found in enumerate(zip_longest(*streams, fillvalue=("", None)), 1):
            sources, targets = zip(*found, strict=True)
            for (path, _), line in zip(pairs, sources, strict=True):
                if SOURCE_SEPARATOR in line.split():
                    raise CorpusError(
                        f"{path}:{number} contains {SOURCE_SEPARATOR}, the tag between sources; remove it"
                    )
            if other := next((place for place, target in enumerate(targets) if target != targets[0]), 0):
                sizes = [number - (targets[place] is None) + sum(1 for _ in streams[place]) for place in (0, other)]
                raise CorpusError(
                    f"{pairs[0][1]} and {pairs[other][1]} differ from line {number} on ({sizes[0]} and {sizes[1]} "
                    "lines), expected the same target for all data.sources; give them files with matching lines"
                )
            src.write(f"{join_sources(sources)}\n".encode())
            tgt.write(f"{targets[0]}\n".encode())
    for (path, _), corpus in zip(pairs, corpora, strict=True):
        _log.info("%s of %s: %s", split, path, corpus.report.summary())
