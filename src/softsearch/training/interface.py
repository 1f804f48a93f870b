"""What training methods read, and what a training asks its methods and callbacks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.dataset import Batch
from softsearch.models.loss import CrossEntropy, Loss, StepContext
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.tokenizer import Tokenizers


@dataclass(frozen=True, eq=False)
class TrainingStep(StepContext):
    """What a training method reads: one batch, the model in training mode, and ``log`` and ``number``.

    Random numbers come from PyTorch's generator, which is seeded at every step.
    """

    model: Seq2Seq
    loss: CrossEntropy
    batch: Batch

    def features(self) -> Tensor:
        """Teacher forcing: the features of the reference, ``[batch, tgt_len, dim]``."""
        batch = self.batch
        return self.model.features(batch.src_tokens, batch.tgt_tokens[:, :-1], batch.src_features)

    def loss_of(self, features: Tensor) -> tuple[Loss, Tensor]:
        """Returns the loss of unpadded target tokens with features ``[batch, tgt_len, dim]``, and their number."""
        places = self.batch.target_places()
        targets = self.batch.tgt_tokens[:, 1:].flatten()[places]
        summed = self.loss(features.flatten(0, 1)[places], targets, self.model.decoder.output_projection)
        return summed, places.new_full((), len(places))


# A step -> the loss summed over the target tokens, and their number: a function, or a ``TrainingPart`` with
# ``__call__``.
TrainingMethod = Callable[[TrainingStep], tuple[Loss, Tensor]]


def teacher_forcing(step: TrainingStep) -> tuple[Loss, Tensor]:
    """The usual ``TrainingMethod``: the decoder reads the reference at every step (Williams & Zipser 1989)."""
    return step.loss_of(step.features())


class TrainingPart:
    """What a training asks a method or a callback; each answer has a default, so that a part gives those it has.

    A method is a function of a ``TrainingStep``, and also a ``TrainingPart`` if it needs the data or checks its
    options. A callback is one of Lightning's, and also a ``TrainingPart`` if it answers anything here.
    """

    varies_by_step: bool = False  # whether it changes what a step computes from step to step, so that none is recorded
    bundle: bool = False  # whether the run ends with the export of a bundle

    def check(self, model: Seq2Seq, source: ParallelSource) -> None:
        """Checks that the part suits a model, on the meta device, and the data, before these are read.

        Raises:
            ConfigError: it does not.
        """

    def for_data(self, source: ParallelSource, tokenizers: Tokenizers) -> Any:
        """Returns the method for data with these languages and tokenizers; a callback is not asked."""
        return self

    def monitored(self) -> tuple[str, ...]:
        """Returns the names of metrics that it logs at validations, such as ``val/bleu``, and that can be monitored."""
        return ()

    def monitor_for(self, monitor: str, data: Any) -> str:
        """Returns the metric to monitor: ``monitor``, or another one if that cannot change on the data."""
        return monitor

    def summary(self) -> dict[str, float]:
        """Returns numbers of the whole run, by name, for ``metrics.json``."""
        return {}


def training_parts(*parts: object) -> list[TrainingPart]:
    """Returns those of a training's method and callbacks that answer its questions."""
    return [part for part in parts if isinstance(part, TrainingPart)]


def for_data(method: TrainingMethod, source: ParallelSource, tokenizers: Tokenizers) -> TrainingMethod:
    """Returns a method for data with these languages and tokenizers."""
    for part in training_parts(method):
        return part.for_data(source, tokenizers)
    return method
