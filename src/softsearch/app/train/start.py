"""Start of a training: new weights, those of another run, or a checkpoint of the run."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softsearch.app.config.build import build_model, load_vectors
from softsearch.app.config.options import Train
from softsearch.app.config.validation import build
from softsearch.app.train.model import freeze
from softsearch.app.train.parts import TrainParts
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.existing_tokenizers import TokenizerMaker
from softsearch.data.preparation.prepare import text_problems
from softsearch.data.tokenizer_files import from_files
from softsearch.evaluation.text_checks import unsegmented
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.module import TranslationModule

log = logging.getLogger(__name__)
_RESULTS = (
    "config.yaml metrics.csv metrics.json curves.png *.hypotheses.txt samples/step-*.txt tensorboard/events.* bundle/*"
)
CHECKPOINTS = "checkpoints/*.ckpt"


@dataclass(frozen=True)
class NewModel:
    """A model with random weights, and what decides which weights it starts from.

    Args:
        model: in training mode.
        node: its resolved config.
        tokenizers: those of the run's data.
    """

    model: Seq2Seq
    node: Mapping[str, Any]
    tokenizers: Tokenizers


class Start(ABC):
    """Where a run starts from: its tokenizers, its weights, and what happens to the files in its folder."""

    def __init__(self, options: Train) -> None:
        self.options = options

    @abstractmethod
    def tokenizers(self) -> TokenizerMaker:
        """Returns where the run's tokenizers come from.

        Raises:
            SoftsearchError: a file is missing, or has no suitable tokenizers.
        """

    @abstractmethod
    def fill(self, new: NewModel) -> None:
        """Loads the weights to start from.

        Raises:
            SoftsearchError: they do not fit the model.
        """

    @abstractmethod
    def clear(self) -> None:
        """Removes what an earlier run left in the run's folder and this one replaces."""

    def fit(self, parts: TrainParts, module: TranslationModule, data: ParallelDataModule) -> None:
        """Trains."""
        parts.trainer.fit(module, datamodule=data)

    def model(self, data: ParallelDataModule, node: Mapping[str, Any]) -> Seq2Seq:
        """Returns the model before its first step; ``node`` is its resolved config.

        Raises:
            SoftsearchError: the model does not fit the data, or the weights to start from.
        """
        model = build_model(self.options.model, data.tokenizers)
        self.fill(NewModel(model, node, data.tokenizers))
        freeze(model, self.options.freeze)
        return model


class Fresh(Start):
    """A new run with random weights, or with pretrained embeddings."""

    def tokenizers(self) -> TokenizerMaker:
        return from_files(build(self.options.tokenizer))

    def fill(self, new: NewModel) -> None:
        load_vectors(self.options.vectors, new.model, new.tokenizers)

    def clear(self) -> None:
        """Removes the files of an earlier run from the run's folder, and nothing else."""
        folder = self.options.run_dir
        for path in (path for pattern in (CHECKPOINTS, *_RESULTS.split()) for path in folder.glob(pattern)):
            if path.is_file():
                path.unlink()


def prepare_data(data: ParallelDataModule, node: dict[str, Any], world_size: int = 1) -> ParallelDataModule:
    """Prepares the data, writes its languages to its config ``node``, and warns of problems in the text.

    Raises:
        SoftsearchError: the data cannot be read, or are not enough for all processes.
    """
    data.prepare_data()
    data.check(world_size)
    source = data.source
    node |= {key: getattr(source, key) for key in ("src_lang", "tgt_lang", "text_form") if key in node}
    for warning in text_problems(source, data.prepared.tgt_tokenizer, data.cache_dir):
        log.warning(warning)
    if problem := unsegmented(data.lines("val")[1], text_form=source.text_form, tgt_lang=source.tgt_lang):
        log.warning("%s; set data.tgt_lang=CODE", problem)
    return data
