"""The training method."""

import pytest
import torch
from my_attention.objective import my_attention

from softsearch.models import CrossEntropy
from softsearch.testing import example_batch, small_model
from softsearch.training import TrainingStep, teacher_forcing


def test_the_entropy_is_subtracted() -> None:
    model, batch = small_model("rnnsearch"), example_batch()
    step = TrainingStep(model, CrossEntropy(), batch)
    usual, _ = teacher_forcing(step)
    found, count = my_attention(step, beta=0.5)
    assert count == (batch.tgt_tokens[:, 1:] != 0).sum()
    with torch.no_grad():
        p = model(batch.src_tokens, batch.tgt_tokens[:, :-1]).softmax(-1)[batch.tgt_tokens[:, 1:] != 0]
    expected = usual.smoothed + 0.5 * (p * p.log()).sum()
    assert step.logged["entropy"] > 0
    assert found.smoothed.item() == pytest.approx(expected.item(), rel=1e-5)
    assert found.nll == usual.nll


def test_without_weight_it_is_teacher_forcing() -> None:
    step = TrainingStep(small_model("rnnsearch"), CrossEntropy(), example_batch())
    assert my_attention(step, beta=0.0)[0].smoothed == teacher_forcing(step)[0].smoothed
