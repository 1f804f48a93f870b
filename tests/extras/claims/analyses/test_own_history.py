"""Losses after the reference's tokens and after the model's own."""

import pytest
import torch
from torch.nn import functional

from softsearch.extras.claims.analyses.contexts import read_losses
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS, PAD

SRC, TGT = torch.tensor([[5, 6, 7, EOS], [8, 9, 10, EOS]]), torch.tensor([[BOS, 9, 10, 6, EOS], [BOS, 5, 5, 12, EOS]])


@torch.no_grad()
@pytest.mark.parametrize("name", ["nematus", "transformer_tiny", "gru"])
def test_the_gold_history_is_teacher_forcing_and_the_own_one_what_was_most_probable(name: str) -> None:
    model = small_model(name, seed=5)
    model.decoder.output_projection.bias[PAD] += 5.0  # the most probable one, and no word
    logits = model(SRC, TGT[:, :-1])
    assert (logits.argmax(-1) == PAD).any()
    expected = functional.cross_entropy(logits.transpose(1, 2), TGT[:, 1:], reduction="none")
    torch.testing.assert_close(read_losses(model, SRC, TGT, own=False), expected)
    read = TGT[:, :1]
    for _ in range(3):
        logits = model(SRC, read)[:, -1]
        logits[:, [PAD, BOS, EOS]] = -torch.inf
        read = torch.cat((read, logits.argmax(-1, keepdim=True)), dim=1)
    expected = functional.cross_entropy(model(SRC, read).transpose(1, 2), TGT[:, 1:], reduction="none")
    torch.testing.assert_close(read_losses(model, SRC, TGT, own=True), expected)
    assert not torch.equal(read, TGT[:, :-1])
