"""The type of training methods, and the usual method: teacher forcing, where the decoder reads the reference."""

from collections.abc import Callable

from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss

# A model in training mode, the loss of a target token, a batch, the number of optimizer steps taken so far -> the loss
# summed over the target tokens, and their number. Random numbers come from PyTorch's generator, seeded at every step.
TrainingMethod = Callable[[Seq2Seq, CrossEntropy, Batch, int], tuple[Loss, Tensor]]


def teacher_forcing(model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int = 0) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: the decoder reads the reference at every step (Williams & Zipser 1989)."""
    del step
    features = model.features(batch.src_tokens, batch.tgt_tokens[:, :-1], batch.src_features)
    return loss_of_targets(model, loss, batch, features)


def loss_of_targets(model: Seq2Seq, loss: CrossEntropy, batch: Batch, features: Tensor) -> tuple[Loss, Tensor]:
    """Returns the loss of unpadded target tokens, from features ``[batch, tgt_len, features]``, and their number."""
    places = batch.target_places()
    targets = batch.tgt_tokens[:, 1:].flatten()[places]
    summed = loss(features.flatten(0, 1)[places], targets, model.decoder.output_projection)
    return summed, places.new_full((), len(places))
