"""The time of steps and of decoding."""

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
    monkeypatch.setattr(step_times, "perf_counter", (n**2 for n in count()).__next__)  # each step takes longer
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
    training, decoding = ([16 * row + start for row in range(8)] for start in (5, 13))  # seconds of second steps
    assert [row["microseconds"] for row in rows] == [seconds * 1e6 / 8 for seconds in training]
    assert [row["decoding"] for row in rows] == [seconds * 1e6 / 8 for seconds in decoding]
    assert [row["growth"] for row in rows[4:]] == pytest.approx([seconds / training[4] for seconds in training[4:]])
    assert rows[6]["decoding_growth"] == pytest.approx(decoding[6] / decoding[4])
    assert [row["speedup"] for row in rows[:4]] == [1] * 4
    assert rows[5]["speedup"] == pytest.approx(training[1] / training[5])
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
