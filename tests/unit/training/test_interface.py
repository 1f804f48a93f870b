"""Teacher forcing against the model's own logits."""

import pytest
import torch

from softsearch.models.loss import CrossEntropy
from softsearch.testing.models import small_model
from softsearch.training.interface import TrainingStep, teacher_forcing
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients, log_probs_of


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
def test_is_the_likelihood_of_the_real_tokens(name: str) -> None:
    model = small_model(name)
    logits = model(BATCH.src_tokens, BATCH.tgt_tokens[:, :-1])
    expected = -log_probs_of(logits, BATCH.tgt_tokens[:, 1:]).sum()
    loss, tokens = teacher_forcing(TrainingStep(model, CrossEntropy(smoothing=0.0), BATCH))
    assert int(tokens) == TOKENS
    torch.testing.assert_close(loss.smoothed, expected)
    torch.testing.assert_close(loss.nll, expected.detach())
    torch.testing.assert_close(gradients(loss.smoothed, model), gradients(expected, model))
