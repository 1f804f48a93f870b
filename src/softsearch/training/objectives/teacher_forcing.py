"""Training methods, and the usual one, teacher forcing: the decoder reads the reference (Williams & Zipser 1989)."""

from typing import Protocol

from torch import Tensor

from softsearch.data.batch import Batch
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.text.vocabulary import PAD


class TrainingMethod(Protocol):
    """Turns a batch into a loss. Random numbers come from PyTorch's generator, which is seeded at each step."""

    def __call__(self, model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int) -> tuple[Loss, Tensor]:
        """The loss summed over the target tokens, and their number.

        Args:
            model: in training mode.
            loss: of a target token.
            batch: sentence pairs.
            step: optimizer steps taken before this one.
        """
        ...


def teacher_forcing(model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int = 0) -> tuple[Loss, Tensor]:
    """See :class:`TrainingMethod`; the same at each step."""
    del step
    read, targets = batch.tgt_tokens[:, :-1], batch.tgt_tokens[:, 1:]
    features = model.features(batch.src_tokens, read)
    real = targets != PAD
    return loss(features[real], targets[real], model.decoder.output), real.sum()
