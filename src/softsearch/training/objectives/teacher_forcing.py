"""Training methods, and the usual one: teacher forcing, where the decoder reads the reference."""

from collections.abc import Callable

from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.text.vocabulary import PAD

# A model in training mode, the loss of a target token, a batch, and the number of optimizer steps taken before -> the
# loss summed over the target tokens, and their number. Random numbers come from PyTorch's generator, seeded every step.
TrainingMethod = Callable[[Seq2Seq, CrossEntropy, Batch, int], tuple[Loss, Tensor]]


def teacher_forcing(model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int = 0) -> tuple[Loss, Tensor]:
    """A :data:`TrainingMethod`: the decoder reads the reference at every step (Williams & Zipser 1989)."""
    del step
    read, targets = batch.tgt_tokens[:, :-1], batch.tgt_tokens[:, 1:]
    features = model.features(batch.src_tokens, read, batch.src_features)
    real = targets != PAD
    return loss(features[real], targets[real], model.decoder.output_projection), real.sum()
