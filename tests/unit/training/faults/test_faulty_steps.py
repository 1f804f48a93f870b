"""A loss that explodes is told, and one that falls is not."""

import logging
from functools import partial
from pathlib import Path

import pytest
from torch.optim import Adam

from softsearch.models.loss import CrossEntropy
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.optimizer.schedules import constant
from tests.support.small_run import small_data, small_module, small_trainer


@pytest.mark.parametrize(
    ("rate", "per", "is_told"), [(10, "token", True), (10, "sentence", True), (0.01, "token", False)]
)
def test_a_loss_far_above_a_uniform_guess_is_told_once(
    rate: float, per: str, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = small_data(tmp_path)
    loss = CrossEntropy(per=per)  # type: ignore[arg-type]
    module = small_module(
        data, optimizer=partial(Adam, lr=rate), loss=loss, scheduler=partial(constant, warmup_steps=1)
    )
    callbacks = [ExactResume(seed=1), FaultySteps(folder=tmp_path)]
    trainer = small_trainer(9, callbacks, log_every_n_steps=1, limit_val_batches=0, gradient_clip_val=None)
    with caplog.at_level(logging.WARNING):
        trainer.fit(module, datamodule=data)
    assert caplog.text.count("is far above that of a uniform guess among") == is_told
    assert ("set optimizer.lr below 10 (" in caplog.text) == is_told
