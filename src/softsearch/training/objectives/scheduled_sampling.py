"""Scheduled sampling (Bengio, Vinyals, Jaitly & Shazeer 2015, arXiv:1506.03099)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.models.interface import Decoder, DecoderState, Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.ranges import NotNegative, Positive, Range, Rate
from softsearch.text.vocabulary import PAD
from softsearch.training.objectives.teacher_forcing import teacher_forcing

Prediction = Literal["sample", "argmax"]


# Steps taken, i -> epsilon_i, the probability of reading the reference (section 2.4); 1 and more mean always.
Decay = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Linear:
    """epsilon_i = max(floor, k - c i); k > 1 delays the decay."""

    k: Positive = 1.0
    c: NotNegative
    floor: Rate = 0.0

    def __call__(self, step: int) -> float:
        """See :data:`Decay`."""
        return max(self.floor, self.k - self.c * step)


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """epsilon_i = k ** i."""

    k: Annotated[float, Range(0, 1, open_low=True, open_high=True)]

    def __call__(self, step: int) -> float:
        """See :data:`Decay`."""
        return self.k**step


@dataclass(frozen=True, kw_only=True)
class InverseSigmoid:
    """epsilon_i = k / (k + exp(i / k)).

    Args:
        k: the larger, the slower; one half after k ln k steps.
    """

    k: Annotated[float, Range(1)]

    def __call__(self, step: int) -> float:
        """See :data:`Decay`."""
        return self.k / (self.k + math.exp(min(step / self.k, 700.0)))  # exp(710) overflows


class ScheduledSampling:
    """Each word that the decoder reads is the reference's with probability epsilon_i, else its own prediction.

    The words to read come from :meth:`Decoder.step`, one position after the other, as in search; then the loss is that
    of teacher forcing on them. As in the paper, no gradient goes through the choice of a word. Both passes share the
    encoder's states and draw the decoder's dropout separately. The first word read is always BOS.

    Args:
        decay: epsilon_i by the number of steps taken; while it is at least 1, this is teacher forcing.
        prediction: a word drawn from the model's distribution, or the most probable one.
    """

    def __init__(self, *, decay: Decay, prediction: Prediction = "sample") -> None:
        self.decay, self.prediction = decay, prediction

    def __call__(self, model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int) -> tuple[Loss, Tensor]:
        """See :data:`TrainingMethod`."""
        epsilon = self.decay(step)
        if epsilon >= 1:
            return teacher_forcing(model, loss, batch, step)
        state = model.encode(batch.src_tokens)
        read = self._words_to_read(model.decoder, state, batch.tgt_tokens[:, :-1], epsilon)
        features = model.decoder.features(read, state)
        targets = batch.tgt_tokens[:, 1:]
        real = targets != PAD
        return loss(features[real], targets[real], model.decoder.output_projection), real.sum()

    @torch.no_grad()
    def _words_to_read(self, decoder: Decoder, state: DecoderState, reference: Tensor, epsilon: float) -> Tensor:
        """The ``reference`` ``[batch, tgt_len]`` with some words replaced by predictions."""
        keep = torch.rand(reference.shape, device=reference.device) < epsilon
        read = [reference[:, 0]]
        for word, kept in zip(reference[:, 1:].unbind(1), keep[:, 1:].unbind(1), strict=True):
            logits, _, state = decoder.step(read[-1], state)
            read.append(torch.where(kept, word, self._predict(logits)))
        return torch.stack(read, dim=1)

    def _predict(self, logits: Tensor) -> Tensor:
        """A word for each row: ``[batch, vocab]`` -> ``[batch]``."""
        if self.prediction == "argmax":
            return logits.argmax(-1)
        # What torch.multinomial does, except that it ends the run where a probability is NaN.
        probs = logits.float().softmax(-1)
        return (probs / torch.empty_like(probs).exponential_()).argmax(-1)
