"""The time of steps and of decoding, with a clock that goes on by a second whenever it is read."""

from itertools import count

import pytest
import torch
from torch import Tensor

from softsearch.data.dataset import Batch
from softsearch.extras.claims import step_times
from softsearch.extras.claims.step_times import StepTimes
from softsearch.models.interface import DecoderState, StepOutput
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS


def test_a_row_for_each_model_vocabulary_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_times, "perf_counter", count().__next__)
    measure = StepTimes(
        models={"full": ["model=rnnlm", "loss.smoothing=0"], "nce": ["model=rnnlm", "loss=nce", "loss.noise_words=2"]},
        lengths=[2, 4],
        tokens=8,
        vocabularies=[10, 30],
        rounds=1,
        steps=1,
        decoding=True,
    )
    rows = measure({})
    places = [(row["model"], row["vocabulary"], row["length"], row["sentences"]) for row in rows]
    sizes = [(10, 2, 4), (10, 4, 2), (30, 2, 4), (30, 4, 2)]
    assert places == [(model, *size) for model in ("full", "nce") for size in sizes]
    times = ("microseconds", "decoding", "growth", "decoding_growth")
    assert {tuple(row[name] for name in times) for row in rows} == {(1e6 / 8, 1e6 / 8, 1, 1)}
    assert rows[2]["parameters"] - rows[0]["parameters"] == 20 * (256 + 1)  # a row of the tied matrix, and a bias


def test_decoding_reads_one_token_after_the_other_without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = small_model("rnnlm").train(), []
    step = model.decoder.step

    def counted(tokens: Tensor, state: DecoderState) -> StepOutput:
        read.append((tokens.tolist(), model.training))
        return step(tokens, state)

    monkeypatch.setattr(model.decoder, "step", counted)
    step_times._decode(model, Batch(torch.tensor([[EOS], [EOS]]), torch.tensor([[BOS, 5, 6, EOS], [BOS, 7, 8, EOS]])))
    assert read == [([BOS, BOS], False), ([5, 7], False), ([6, 8], False)]
