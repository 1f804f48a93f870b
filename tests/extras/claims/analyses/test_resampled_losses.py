"""The loss of resampled sentences, against the loss of each sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.extras.claims.analyses.resampled_losses import resampled_losses
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.search import score_pairs
from softsearch.testing.models import small_model

SRC, TGT = [[5, 6, 7], [8, 9], [4]], [[7, 8], [5, 6, 9, 9], []]


class Text:
    def encode(self, _: Any) -> Any:
        return SRC, TGT


def test_a_resample_has_the_loss_per_token_of_its_sentences() -> None:
    others: Any = {"name": "", "tokenizers": None, "source": None}
    inspected = Inspected(model=small_model("ngram", seed=1), **others)
    (row,) = resampled_losses(inspected, Text(), Path())  # type: ignore[arg-type]
    losses = [-pair.log_prob for pair in score_pairs(inspected.step_fn, SRC, TGT, batch_tokens=100)]
    assert row["sentences"] == 3
    assert row["loss"] == pytest.approx(sum(losses) / 9)  # six tokens and three ends
    drawn = np.repeat(range(3), resample_counts(range(3))[0].astype(int))
    expected = sum(losses[index] for index in drawn) / sum(len(TGT[index]) + 1 for index in drawn)
    assert float(row["loss_resampled"].split()[0]) == pytest.approx(expected, rel=1e-4)
    assert len(set(row["loss_resampled"].split())) > 1
