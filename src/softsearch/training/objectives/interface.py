"""The interface of all training methods."""

from typing import Protocol

from torch import Tensor

from softsearch.data.batch import Batch
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss


class TrainingMethod(Protocol):
    """Turns a batch into a loss. Whatever it draws comes from PyTorch's generator, which each step seeds."""

    def __call__(self, model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int) -> tuple[Loss, Tensor]:
        """The loss summed over the target tokens, and their number.

        Args:
            model: in training mode.
            loss: of a target token.
            batch: sentence pairs.
            step: optimizer steps taken before this one.
        """
        ...
