"""Scheduled sampling (Bengio, Vinyals, Jaitly & Shazeer 2015, arXiv:1506.03099)."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import torch
from torch import Tensor

from softsearch.models.interface import Decoder, DecoderState
from softsearch.models.loss import Loss
from softsearch.ranges import NotNegative, Positive, Range, Rate
from softsearch.training.interface import TrainingStep, teacher_forcing

Prediction = Literal["sample", "argmax"]

# Number of steps taken i -> epsilon_i, the probability of reading the reference (section 2.4); always if it is >= 1.
Decay = Callable[[int], float]


def linear(step: int, *, k: Positive = 1.0, c: NotNegative = 1e-4, floor: Rate = 0.0) -> float:
    """epsilon_i = max(floor, k - c i); k > 1 delays the decay."""
    return max(floor, k - c * step)


def exponential(step: int, *, k: Annotated[float, Range(0, 1, open_low=True, open_high=True)] = 0.9999) -> float:
    """epsilon_i = k ** i."""
    return k**step


def inverse_sigmoid(step: int, *, k: Annotated[float, Range(1)] = 1000.0) -> float:
    """epsilon_i = k / (k + exp(i / k)): the larger k, the slower; it is one half after k ln k steps."""
    return k / (k + math.exp(min(step / k, 700.0)))  # exp(710) overflows


def scheduled_sampling(
    step: TrainingStep, *, decay: Decay = inverse_sigmoid, prediction: Prediction = "sample"
) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: the decoder reads reference words with probability epsilon_i, else its predictions.

    The words to read come from ``Decoder.step``, position by position, as in search; the loss is then that of
    teacher forcing on them. As in the paper, no gradient flows through the choice of a word. Both passes share the
    encoder's states and draw the decoder's dropout separately. The first word read is always BOS.

    ``decay`` computes epsilon_i; while that is at least 1, this is teacher forcing. A ``prediction`` is drawn from the
    model's distribution (``sample``) or its most probable word (``argmax``).
    """
    model, batch, epsilon = step.model, step.batch, decay(step.number)
    if epsilon >= 1:
        return teacher_forcing(step)
    state = model.encode(batch.src_tokens, batch.src_features)
    read = _words_to_read(model.decoder, state, batch.tgt_tokens[:, :-1], epsilon, prediction)
    return step.loss_of(model.decoder.features(read, state))


@torch.no_grad()
def _words_to_read(
    decoder: Decoder, state: DecoderState, reference: Tensor, epsilon: float, prediction: Prediction
) -> Tensor:
    """Returns the ``reference`` ``[batch, tgt_len]`` with some words replaced by predictions."""
    keep = torch.rand(reference.shape, device=reference.device) < epsilon
    read = [reference[:, 0]]
    for word, kept in zip(reference[:, 1:].unbind(1), keep[:, 1:].unbind(1), strict=True):
        scores, _, state = decoder.step(read[-1], state)  # [batch, vocab]
        if prediction == "sample":
            # Like torch.multinomial, but without ending the run if a probability is NaN.
            probs = scores.float().softmax(-1)
            scores = probs / torch.empty_like(probs).exponential_()
        read.append(torch.where(kept, word, scores.argmax(-1)))
    return torch.stack(read, dim=1)
