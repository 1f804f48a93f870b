"""Sentences of a corpus joined into longer ones, to train on longer text than the corpus contains."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm
from softsearch.data.corpora.multilingual import check_parts
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digests_of
from softsearch.errors import ConfigError
from softsearch.ranges import AtLeastOne
from softsearch.text.filters import CorpusStream

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Joined(ParallelSource):
    """Consecutive sentences of another source, joined by spaces on both sides.

    Args:
        source: the corpus.
        train: how many sentences to join in training: with ``[1, 3]`` the first stays alone, the next three are joined,
            then it starts again. Sentences left over at the end are dropped.
        held_out: the same for validation and test.

    Raises:
        ConfigError: a list is empty, or the source is not a single corpus in one language pair.
    """

    source: ParallelSource
    train: Sequence[AtLeastOne] = (1,)
    held_out: Sequence[AtLeastOne] = (1, 2, 4, 8)

    def __post_init__(self) -> None:
        """Checks the options and fills in the languages."""
        check_parts("data", {"source": self.source})
        if not (self.train and self.held_out):
            raise ConfigError(
                "data.train and data.held_out need at least one number, such as '[1,2]'; change the empty one"
            )
        self._fill_in_languages([self.source.src_lang], [self.source.tgt_lang])

    @property
    def text_form(self) -> TextForm:
        return self.source.text_form

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns files in ``cache_dir``, written if necessary.

        Raises:
            CorpusError: a file of the source cannot be read, or ``cache_dir`` cannot be written.
        """
        parts = self.source.files(cache_dir)
        contents = [(split, *digests_of(pair, cache_dir)) for split, pair in sorted(parts.items())]
        identity = repr((_FORMAT, contents, list(self.train), list(self.held_out)))

        def write(folder: Path) -> None:
            for split, pair in parts.items():
                sizes = self.train if split == "train" else self.held_out
                with (folder / f"{split}.src").open("wb") as src, (folder / f"{split}.tgt").open("wb") as tgt:
                    for src_line, tgt_line in join(CorpusStream(*pair).pairs(), sizes):
                        src.write(f"{src_line}\n".encode())
                        tgt.write(f"{tgt_line}\n".encode())

        folder = made_folder(cache_dir, "joined", identity, write)
        return {split: (folder / f"{split}.src", folder / f"{split}.tgt") for split in parts}


def join(pairs: Iterable[tuple[str, str]], sizes: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Joins the lines of each side in groups of ``sizes``, in turn; an incomplete group at the end is dropped."""
    rest = iter(pairs)
    for size in cycle(sizes):
        taken = list(islice(rest, size))
        if len(taken) < size:
            return
        src, tgt = zip(*taken, strict=True)
        yield " ".join(src), " ".join(tgt)
