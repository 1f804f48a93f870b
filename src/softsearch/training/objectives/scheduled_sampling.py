"""Scheduled sampling (Bengio, Vinyals, Jaitly & Shazeer 2015, arXiv:1506.03099)."""

from typing import Literal

import torch
from torch import Tensor

from softsearch.data.batch import Batch
from softsearch.models.interface import Decoder, DecoderState, Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.text.vocabulary import PAD
from softsearch.training.objectives.decay import Decay
from softsearch.training.objectives.teacher_forcing import teacher_forcing

Prediction = Literal["sample", "argmax"]


class ScheduledSampling:
    """Each word that the decoder reads is the reference's with probability epsilon_i, else its own prediction.

    The words to read are found by :meth:`Decoder.step`, one position after the other, as in search and for every
    decoder alike; then the loss is that of teacher forcing on them. As in the paper, no gradient goes through the
    choice of a word. The two passes share the encoder's states and draw their decoder's dropout separately. The first
    word read, BOS, is always given.

    Args:
        decay: epsilon_i by the number of steps taken; no draws are made while it is at least 1.
        prediction: a word drawn from the model's distribution, or its most probable one.
    """

    def __init__(self, *, decay: Decay, prediction: Prediction = "sample") -> None:
        self.decay, self.prediction = decay, prediction

    def __call__(self, model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int) -> tuple[Loss, Tensor]:
        """See :class:`TrainingMethod`."""
        epsilon = self.decay(step)
        if epsilon >= 1:
            return teacher_forcing(model, loss, batch, step)
        state = model.encode(batch.src_tokens)
        read = self._words_to_read(model.decoder, state, batch.tgt_tokens[:, :-1], epsilon)
        features = model.decoder.features(read, state)
        targets = batch.tgt_tokens[:, 1:]
        real = targets != PAD
        return loss(features[real], targets[real], model.decoder.output), real.sum()

    @torch.no_grad()
    def _words_to_read(self, decoder: Decoder, state: DecoderState, reference: Tensor, epsilon: float) -> Tensor:
        """The ``reference`` ``[batch, tgt_len]`` with predictions in it."""
        given = torch.rand(reference.shape, device=reference.device) < epsilon
        read = [reference[:, 0]]
        for true, keep in zip(reference[:, 1:].unbind(1), given[:, 1:].unbind(1), strict=True):
            logits, _, state = decoder.step(read[-1], state)
            read.append(torch.where(keep, true, self._predict(logits)))
        return torch.stack(read, dim=1)

    def _predict(self, logits: Tensor) -> Tensor:
        """A word for each row: ``[batch, vocab]`` -> ``[batch]``."""
        if self.prediction == "argmax":
            return logits.argmax(-1)
        # As torch.multinomial draws one word, which however ends the run where a probability is NaN.
        probs = logits.float().softmax(-1)
        return (probs / torch.empty_like(probs).exponential_()).argmax(-1)
