"""What is to be prepared: files, options, and the folder that they determine."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource
from softsearch.data.existing_tokenizers import TokenizerMaker, identity
from softsearch.data.preparation.digests import digest_of
from softsearch.text.noise import NO_NOISE, Noise

FORMAT = 3  # of the pairs and their ids; a run resumes only with the same
LAYOUT = 4  # of the folders
Progress = Callable[[str, int, int | None], object]  # is told the task, pairs done, and all pairs if known


@dataclass(frozen=True)
class Inputs:
    """What determines prepared data.

    Args:
        source: has the text.
        trainer: makes the tokenizers.
        cache_dir: folder for everything that is made.
        noise: its cases are also in the text for tokenizers.
    """

    source: ParallelSource
    trainer: TokenizerMaker
    cache_dir: Path
    noise: Noise = NO_NOISE

    @cached_property
    def files(self) -> Mapping[str, list[FilePair]]:
        """The files of each split; only training may have several."""
        files = {split: [pair] for split, pair in self.source.files(self.cache_dir).items()}
        return {**files, "train": self.source.train_files(self.cache_dir)}

    @cached_property
    def features(self) -> dict[str, Path]:
        """The file of each split's feature vectors, if the data has them."""
        return self.source.features(self.cache_dir)

    @cached_property
    def links(self) -> Sequence[Path] | None:
        """The links file of each corpus, an empty list to make links, or None."""
        return self.source.train_links(self.cache_dir)

    @cached_property
    def folder(self) -> Path:
        """The folder of the result, by the contents of all files and by all options that determine it."""
        corpora = {split: len(pairs) for split, pairs in self.files.items()}
        filters = asdict(self.source.filters), [letter.pattern for letter in self.source.letters()]
        what = [FORMAT, identity(self.trainer), corpora, self.source.reversed_sides, self.source.tags, filters]
        what += [self.noise.cases] if any(self.noise.cases) else []
        what += [] if self.links is None else ["links", len(self.links)]
        digest = hashlib.sha256(json.dumps(what).encode())
        for path in self._paths:
            digest.update(bytes.fromhex(self.digests[path]))
        return self.cache_dir / "prepared" / f"{digest.hexdigest()[:16]}.{LAYOUT}"

    @cached_property
    def _paths(self) -> list[Path]:
        texts = [path for pairs in self.files.values() for pair in pairs for path in pair]
        return [*texts, *self.features.values(), *(self.links or ())]

    @cached_property
    def digests(self) -> Mapping[Path, str]:
        """The SHA-256 of each file that is read."""
        return {path: digest_of(path, self.cache_dir) for path in dict.fromkeys(self._paths)}
