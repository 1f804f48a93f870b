"""The loss after the last tokens alone, against single steps of the decoder."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.data.dataset import pad
from softsearch.extras.claims.analyses.contexts import cut_losses, losses_by_context
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.testing.models import small_model

TGT = pad([torch.tensor([5, 6, 7, 8, 9]).numpy(), torch.tensor([9, 4]).numpy()], bos=True)
SRC = torch.full((2, 1), 3)


@torch.no_grad()
@pytest.mark.parametrize("context", [1, 3, 50])
def test_a_token_is_predicted_from_those_before_it(context: int) -> None:
    model = small_model("rnnlm", seed=2)
    expected = []
    for row, length in zip(TGT, (6, 3), strict=True):
        for place in range(1, length + 1):
            state = model.encode(SRC[:1])
            for token in row[max(0, place - context) : place]:
                logits, _, state = model.decoder.step(token[None], state)
            expected.append(-float(logits.log_softmax(-1)[0, row[place]]))
    assert cut_losses(model, SRC, TGT, context).tolist() == pytest.approx(expected, abs=1e-5)


def test_a_resample_has_the_loss_of_its_tokens() -> None:
    model = small_model("rnnlm", seed=2)
    system: Any = SimpleNamespace(model=model, tokenizers=None)
    text: Any = SimpleNamespace(encode=lambda _: ([[], [], []], [[5, 6, 7, 8, 9], [9, 4], [7]]))
    row, everything = losses_by_context(system, text, Path(), contexts=[2], sentences=2)
    losses = cut_losses(model, SRC, TGT, 2).numpy()
    assert (row["context"], row["sentences"], everything["context"]) == (2, 2, "all")
    assert row["loss"] == pytest.approx(losses.mean())
    assert row["perplexity"] == pytest.approx(np.exp(row["loss"]))
    parts = [losses[:6], losses[6:]]
    draws = [np.repeat(range(2), counts.astype(int)) for counts in resample_counts(range(2))]
    expected = [np.concatenate([parts[i] for i in drawn]).mean() for drawn in draws]
    assert [float(each) for each in row["loss_resampled"].split()] == pytest.approx(expected, rel=1e-4)
    assert everything["loss"] != row["loss"]
