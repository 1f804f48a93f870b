"""Losses after the reference's tokens and after the model's own."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from softsearch.extras.claims.analyses import contexts
from softsearch.extras.claims.analyses.contexts import losses_by_history, read_losses
from softsearch.extras.claims.parts_of_test import resample_counts
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


def test_a_resample_has_the_loss_of_its_tokens_at_the_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "_BATCH", 2)
    model = small_model("nematus", seed=5)
    src, tgt = [[5, 6, 7], [8, 9], [4]], [[7, 8], [5, 6, 9, 9], []]
    system: Any = SimpleNamespace(model=model, tokenizers=None)
    text: Any = SimpleNamespace(encode=lambda _: (src, tgt))
    rows = {(row["history"], row["position"]): row for row in losses_by_history(system, text, Path(), ends=[2, 5, 9])}
    draws = [np.repeat(range(3), counts.astype(int)) for counts in resample_counts(range(3))]
    for own in (False, True):
        losses = [
            read_losses(model, torch.tensor([[*x, EOS]]), torch.tensor([[BOS, *y, EOS]]), own=own)[0].tolist()
            for x, y in zip(src, tgt, strict=True)
        ]
        for name, part, sentences in (("01-02", slice(2), 3), ("03-05", slice(2, 5), 2), ("all", slice(9), 3)):
            row = rows["own" if own else "gold", name]
            assert row["sentences"] == sentences
            assert row["loss"] == pytest.approx(np.mean([loss for each in losses for loss in each[part]]))
            expected = [np.mean([loss for i in drawn for loss in losses[i][part]] or [0]) for drawn in draws]
            assert [float(each) for each in row["loss_resampled"].split()] == pytest.approx(expected, rel=1e-4)
        assert rows["own" if own else "gold", "06-09"]["loss"] is None
