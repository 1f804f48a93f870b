"""Teacher forcing against the model's own logits, and the method and the loss of docs/recipes.md."""

from typing import Any

import pytest
import torch

from softsearch.app.config.composition import composed
from softsearch.models.loss import CrossEntropy
from softsearch.testing.models import small_model
from softsearch.training.interface import TrainingStep, teacher_forcing
from tests.support.documented import python_blocks
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


def test_the_method_and_the_loss_of_the_docs() -> None:
    names: dict[str, Any] = {}
    for block in python_blocks("docs/recipes.md"):
        exec(block, names)
    recipes = {name: value for name, value in composed("train", "model=gru").loss.items() if name != "_target_"}
    warm = names["WarmSmoothing"](steps=1000, **(recipes | {"smoothing": 0.2}))
    step = TrainingStep(small_model("rnnsearch"), warm, BATCH, number=500)
    warm.begin_step(step)
    usual, tokens = teacher_forcing(step)
    found, count = names["confidence_penalty"](step, beta=0.5)
    assert (warm.smoothing, step.logged["smoothing"]) == (0.1, pytest.approx(0.1))
    assert count == tokens
    torch.testing.assert_close(found.smoothed, usual.smoothed - 0.5 * step.logged["entropy"] * tokens)
    assert warm.varies_by_step
