"""A trained run: the folder that ``softsearch train`` and ``softsearch.lab.train`` write."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from softsearch.app.cache import cache_folder
from softsearch.app.config.build import rebuild_model, rebuild_source, untrained_model
from softsearch.app.results import read_metrics, translations_of
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import CorpusError
from softsearch.evaluation.inference import translate_sources
from softsearch.evaluation.test_set import HeldOutText, read_split
from softsearch.models.seq2seq import Seq2Seq
from softsearch.report.curves import Points, read_points
from softsearch.runtime.translation import text_lines
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import SearchStrategy
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from softsearch.training.checkpoints.folder import checkpoint_file


@dataclass(frozen=True)
class Run:
    """A trained run.

    Args:
        folder: the run's folder, as in ``ckpt=RUN``.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Also takes a folder's name."""
        object.__setattr__(self, "folder", Path(self.folder))

    @property
    def metrics(self) -> dict[str, float]:
        """The final metrics, such as ``test/bleu``, as in ``metrics.json``; empty if the run was not tested."""
        return read_metrics(self.folder)

    def curves(self) -> Points:
        """Returns the steps and the values of each logged metric; the folder has a drawing, ``curves.png``.

        Raises:
            CorpusError: the run has no readable ``metrics.csv``.
        """
        path = self.folder / "metrics.csv"
        try:
            return read_points(path)
        except (OSError, LookupError, ValueError) as error:
            raise CorpusError(f"{path} cannot be read ({error}); train with logger=csv") from error

    @cached_property
    def model(self) -> Seq2Seq:
        """The model of the best checkpoint, in evaluation mode, on the GPU if there is one.

        Raises:
            CheckpointError: there is no checkpoint, or it is damaged.
        """
        return rebuild_model(self._contents).to("cuda" if torch.cuda.is_available() else "cpu")

    def new_model(self) -> Seq2Seq:
        """Returns a new model of the run's config, with random weights; PyTorch's seed decides them."""
        return untrained_model(self._contents).eval()

    @cached_property
    def source(self) -> ParallelSource:
        """The data that the run was trained on; nothing is read yet."""
        return rebuild_source(self._contents)

    @property
    def cache_dir(self) -> Path:
        """The folder where its data are prepared and downloaded; the usual one for a run without data."""
        return Path(self._contents.config.get("cache_dir") or cache_folder())

    def held_out(self, split: str = "test") -> HeldOutText:
        """Reads a split of the run's data.

        Raises:
            CorpusError: a file cannot be read, or there is no such split.
        """
        text = read_split(self.source, split, self.cache_dir, "train on data with one")
        return text.joined(self.tokenizers[1])

    def translations(self, split: str = "test") -> list[str]:
        """Returns the translations that were written when the run was tested.

        Raises:
            CorpusError: there are none.
        """
        return [*read_lines(self.folder / translations_of(split))]

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of source and target."""
        return self._contents.tokenizers

    def translate(self, lines: Iterable[str], search: SearchStrategy | None = None) -> list[str]:
        """Translates sentences in the form that the model was trained on; blank lines give "".

        Args:
            lines: one sentence each.
            search: beam search by default, with the length limit of the run.

        Raises:
            InputError: a line is not text.
        """
        src, tgt = self.tokenizers
        limit = max(BeamSearch.max_length_factor, self._contents.max_length_factor)
        sources = [src.encode(line) for line in text_lines("lines", lines, 1)]
        found = translate_sources(
            self.model, tgt, search or BeamSearch(max_length_factor=limit), [ids for ids in sources if ids]
        )
        texts = iter(found)
        return [next(texts) if ids else "" for ids in sources]

    def _repr_markdown_(self) -> str:
        """Shows the run in a notebook."""
        rows = "".join(f"| {name} | {value:,.6g} |\n" for name, value in self.metrics.items())
        return f"`{self.folder}`\n\n| metric | value |\n|---|---:|\n{rows}"

    @cached_property
    def _contents(self) -> CheckpointContents:
        return read_contents(checkpoint_file(self.folder))
