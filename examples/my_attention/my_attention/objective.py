"""A training method: teacher forcing that punishes confidence."""

from torch import Tensor

from softsearch.data import Batch
from softsearch.models import CrossEntropy, Loss, Seq2Seq
from softsearch.ranges import NotNegative
from softsearch.training import loss_of_targets


def my_attention(
    model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int, *, beta: NotNegative = 0.1
) -> tuple[Loss, Tensor]:
    """A confidence penalty (Pereyra et al. 2017, arXiv:1701.06548, section 3): -log p(y) - ``beta`` H(p)."""
    features = model.features(batch.src_tokens, batch.tgt_tokens[:, :-1], batch.src_features)
    summed, count = loss_of_targets(model, loss, batch, features)
    logits = model.decoder.output_projection(features.flatten(0, 1)[batch.target_places()])
    log_probs = logits.float().log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum()
    return Loss(summed.smoothed - beta * entropy, summed.nll), count
