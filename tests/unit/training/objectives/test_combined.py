"""Several methods at once: the weighted sum, what each logs, and the questions that a training asks each."""

from typing import Any

import pytest
import torch
from torch import Tensor

from softsearch.data.corpora.parallel import Parallel
from softsearch.errors import ConfigError
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.testing.models import small_model
from softsearch.training.interface import TrainingPart, TrainingStep, teacher_forcing, training_parts
from softsearch.training.objectives.combined import Combined
from softsearch.training.objectives.r_drop import r_drop
from tests.unit.training.objectives.batches import BATCH

SOURCE = Parallel(train=["a", "b"], val=["a", "b"], src_lang="en", tgt_lang="de")


class Asked(TrainingPart):
    """Notes what it is asked, and has twice the loss of teacher forcing."""

    def __init__(self) -> None:
        self.questions: list[Any] = []

    def check(self, model: Any, source: Any) -> None:
        self.questions.append((model, source))

    def for_data(self, source: Any, tokenizers: Any) -> "Asked":
        self.questions.append((source, tokenizers))
        return Asked()

    def __call__(self, step: TrainingStep) -> tuple[Loss, Tensor]:
        summed, tokens = teacher_forcing(step)
        step.log("number", step.number)
        return Loss(2 * summed.smoothed, summed.nll + 1), tokens


def test_the_loss_is_the_weighted_sum_and_each_logs_under_its_name() -> None:
    model = small_model("rnnsearch").train()
    step = TrainingStep(model, CrossEntropy(), BATCH, number=3)
    method = Combined(methods={"forced": teacher_forcing, "twice": Asked()}, weights={"twice": 0.25})
    found, tokens = method(step)
    expected, count = teacher_forcing(step)
    torch.testing.assert_close(found.smoothed, 1.5 * expected.smoothed)
    assert (found.nll, tokens) == (expected.nll, count)
    assert step.logged.keys() == {"forced/loss", "twice/loss", "twice/number"}
    assert step.logged["twice/number"] == 3
    torch.testing.assert_close(step.logged["twice/loss"], 2 * expected.smoothed.detach() / count)
    ours = torch.autograd.grad(found.smoothed, list(model.parameters()), allow_unused=True)
    theirs = torch.autograd.grad(1.5 * expected.smoothed, list(model.parameters()), allow_unused=True)
    torch.testing.assert_close(ours, theirs)


def test_each_is_asked_and_a_function_is_not() -> None:
    asked = Asked()
    method = Combined(methods={"r_drop": r_drop, "asked": asked}, weights={"asked": 3})
    method.check(None, SOURCE)  # type: ignore[arg-type]
    tokenizers: Any = (None, None)
    made = method.for_data(SOURCE, tokenizers)
    assert asked.questions == [(None, SOURCE), (SOURCE, tokenizers)]
    assert made.methods["r_drop"] is r_drop
    assert made.methods["asked"] is not asked
    assert made.weights == {"r_drop": 1, "asked": 3}
    assert training_parts(r_drop, made) == [made]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": {}}, r"method\.methods is empty"),
        ({"methods": {"a": r_drop}, "weights": {"b": 2}}, r"method\.weights\.b is the weight of no method"),
    ],
)
def test_what_cannot_be_combined(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Combined(**options)
