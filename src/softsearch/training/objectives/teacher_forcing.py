"""The usual training method, teacher forcing, where the decoder reads the reference."""

from torch import Tensor

from softsearch.models.loss import Loss
from softsearch.training.interface import TrainingStep


def teacher_forcing(step: TrainingStep) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: the decoder reads the reference at every step (Williams & Zipser 1989)."""
    return step.loss_of(step.features())
