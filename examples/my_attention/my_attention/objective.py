"""A training method: teacher forcing that punishes confidence."""

from torch import Tensor

from softsearch.models import Loss
from softsearch.ranges import NotNegative
from softsearch.training import TrainingStep


def my_attention(step: TrainingStep, *, beta: NotNegative = 0.1) -> tuple[Loss, Tensor]:
    """A confidence penalty (Pereyra et al. 2017, arXiv:1701.06548, section 3): -log p(y) - ``beta`` H(p)."""
    features = step.features()
    summed, count = step.loss_of(features)
    logits = step.model.decoder.output_projection(features.flatten(0, 1)[step.batch.target_places()])
    log_probs = logits.float().log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum()
    step.log("entropy", entropy / count)  # train/entropy, nats per token
    return Loss(summed.smoothed - beta * entropy, summed.nll), count
