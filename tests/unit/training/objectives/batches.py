"""A small batch, and a model's gradients, for the tests of the methods."""

import torch
from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.models.layers import Dropout
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.vocabulary import BOS, EOS, PAD

BATCH = Batch(
    torch.tensor([[4, 5, EOS], [6, EOS, PAD], [7, 8, EOS]]),
    torch.tensor([[BOS, 7, 8, 9, EOS], [BOS, 5, EOS, PAD, PAD], [BOS, 11, 12, EOS, PAD]]),
)
TOKENS = 9  # real target tokens


def gradients(loss: Tensor, model: Seq2Seq) -> list[Tensor]:
    """Of each parameter; zeros where it is not used (an encoder without a decoder that reads it)."""
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [torch.zeros(()) if gradient is None else gradient for gradient in found]


def set_dropout(model: Seq2Seq, rate: float) -> None:
    """In every layer that has some."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.rate = rate
    model.train()


def log_probs_of(logits: Tensor, targets: Tensor) -> Tensor:
    """log p of each target, zero for padding."""
    chosen = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    return torch.where(targets != PAD, chosen, torch.zeros_like(chosen))
