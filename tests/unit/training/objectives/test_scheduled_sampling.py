"""Scheduled sampling against a transcription that takes one step at a time."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softsearch.data.dataset import Batch
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.vocabulary import BOS, EOS
from softsearch.training.interface import TrainingMethod, TrainingStep, teacher_forcing
from softsearch.training.objectives.scheduled_sampling import (
    Decay,
    exponential,
    inverse_sigmoid,
    linear,
    scheduled_sampling,
)
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients, log_probs_of, set_dropout

PLAIN = CrossEntropy(smoothing=0.0)


def sampling(epsilon: float, prediction: Any = "argmax") -> TrainingMethod:
    """With the same epsilon at every step."""
    return partial(scheduled_sampling, decay=lambda _: epsilon, prediction=prediction)


def by_the_book(model: Seq2Seq, batch: Batch, epsilon: float) -> Tensor:
    """-log p of the references, each word scored where it is read next; figure 1 of the paper."""
    coins = torch.rand(batch.tgt_tokens[:, :-1].shape)
    state, word, total = model.encode(batch.src_tokens), batch.tgt_tokens[:, 0], torch.zeros((), dtype=torch.float64)
    for t in range(batch.tgt_tokens.shape[1] - 1):
        logits, _, state = model.decoder.step(word, state)
        target = batch.tgt_tokens[:, t + 1]
        total = total - log_probs_of(logits, target).sum()
        if t + 1 < coins.shape[1]:
            word = torch.where(coins[:, t + 1] < epsilon, target, logits.argmax(-1))
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("name", ["rnnsearch", "lstm", "luong2015", "transformer_tiny", "transformer_ssru", "rnnlm"])
def test_equals_the_loop_of_steps(name: str, epsilon: float) -> None:
    model = small_model(name)
    torch.manual_seed(3)
    expected = by_the_book(model, BATCH, epsilon)
    torch.manual_seed(3)
    loss, tokens = sampling(epsilon)(TrainingStep(model, PLAIN, BATCH))
    assert int(tokens) == TOKENS
    torch.testing.assert_close(loss.smoothed, expected)
    torch.testing.assert_close(gradients(loss.smoothed, model), gradients(expected, model))
    assert not torch.isclose(expected, teacher_forcing(TrainingStep(model, PLAIN, BATCH))[0].smoothed)


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
def test_an_epsilon_of_1_is_teacher_forcing_to_the_bit(name: str) -> None:
    model = small_model(name).float()
    set_dropout(model, 0.5)
    torch.manual_seed(3)
    expected = teacher_forcing(TrainingStep(model, PLAIN, BATCH))[0].smoothed
    torch.manual_seed(3)
    found = scheduled_sampling(TrainingStep(model, PLAIN, BATCH, number=10), decay=partial(linear, k=2.0, c=0.1))[
        0
    ].smoothed
    assert torch.equal(found, expected)
    assert all(map(torch.equal, gradients(found, model), gradients(expected, model)))


def words_read(model: Seq2Seq, method: TrainingMethod, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """What the decoder is given for the pass that is trained on."""
    seen, features = [], model.decoder.features

    def spy(tokens: Tensor, state: Any) -> Tensor:
        seen.append(tokens)
        return features(tokens, state)

    monkeypatch.setattr(model.decoder, "features", spy)
    torch.manual_seed(3)
    method(TrainingStep(model, PLAIN, batch))
    (read,) = seen
    return read


def alike(rows: int, length: int) -> Batch:
    return Batch(torch.tensor([[4, EOS]]).repeat(rows, 1), torch.tensor([[BOS] + [7] * length + [EOS]]).repeat(rows, 1))


def test_the_share_of_given_words_is_epsilon_and_the_first_is_always_given(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("rnnsearch")
    with torch.no_grad():
        model.decoder.output_projection.bias[9] = 1e4
    read = words_read(model, sampling(0.25), alike(100, 50), monkeypatch)
    assert read.shape == (100, 51)
    assert set(read[:, 0].tolist()) == {BOS}
    assert set(read[:, 1:].flatten().tolist()) == {7, 9}
    assert float((read[:, 1:] == 7).double().mean()) == pytest.approx(0.25, abs=0.02)


def test_sampled_words_have_the_models_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = small_model("rnnsearch"), alike(20_000, 1)
    logits = model.decoder.step(torch.tensor([BOS]), model.encode(batch.src_tokens[:1])).logits
    probs = logits[0].softmax(-1).detach()
    read = words_read(model, sampling(0.0, "sample"), batch, monkeypatch)
    shares = torch.bincount(read[:, 1], minlength=TGT_VOCAB) / len(read)
    assert probs.max() < 0.9
    torch.testing.assert_close(shares, probs.float(), rtol=0, atol=0.012)  # over three standard deviations


@pytest.mark.parametrize("prediction", ["sample", "argmax"])
def test_depends_on_the_seed_alone(prediction: str) -> None:
    model = small_model("rnnsearch").float()
    set_dropout(model, 0.3)

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        return float(sampling(0.5, prediction)(TrainingStep(model, PLAIN, BATCH))[0].nll)

    assert loss(1) == loss(1)
    assert len({loss(seed) for seed in range(5)}) == 5


def test_epsilon_follows_the_step() -> None:
    model = small_model("rnnsearch")
    method = partial(scheduled_sampling, decay=partial(linear, k=1.0, c=0.1), prediction="argmax")
    given = teacher_forcing(TrainingStep(model, PLAIN, BATCH))[0].nll
    torch.manual_seed(3)
    assert torch.equal(method(TrainingStep(model, PLAIN, BATCH))[0].nll, given)
    torch.manual_seed(3)
    late = method(TrainingStep(model, PLAIN, BATCH, number=9))[0].nll
    torch.manual_seed(3)
    torch.testing.assert_close(late, by_the_book(model, BATCH, 0.1).detach())


def test_gradient_of_the_decoders_start() -> None:
    model = small_model("rnnsearch")
    layer = model.decoder.get_submodule("initial_state.projection")
    assert isinstance(layer, nn.Linear)
    bias = layer.bias.detach().clone().requires_grad_()
    del layer.bias

    def loss(bias: Tensor) -> Tensor:
        layer.bias = bias  # type: ignore[assignment]
        torch.manual_seed(3)
        return sampling(0.4)(TrainingStep(model, PLAIN, BATCH))[0].smoothed

    assert torch.autograd.gradcheck(loss, (bias,))


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
def test_mixed_precision_trains_every_parameter(name: str) -> None:
    model = small_model(name).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = sampling(0.0)(TrainingStep(model, PLAIN, BATCH))
    loss.smoothed.backward()
    assert [key for key, parameter in model.named_parameters() if parameter.grad is None] == []


def test_a_model_of_nan_gives_a_loss_of_nan() -> None:
    model = small_model("rnnsearch")
    with torch.no_grad():
        model.decoder.output_projection.bias.fill_(torch.nan)
    assert sampling(0.0, "sample")(TrainingStep(model, PLAIN, BATCH))[0].smoothed.isnan()


def test_linear_decay() -> None:
    decay = partial(linear, k=1.5, c=0.25, floor=0.3)
    assert [decay(step) for step in range(7)] == pytest.approx([1.5, 1.25, 1.0, 0.75, 0.5, 0.3, 0.3])


def test_exponential_decay() -> None:
    decay = partial(exponential, k=0.5)
    assert [decay(step) for step in range(4)] == [1.0, 0.5, 0.25, 0.125]
    assert decay(10**6) == 0.0


def test_inverse_sigmoid_decay() -> None:
    decay = partial(inverse_sigmoid, k=20.0)
    for step in (0, 1, 30, 200):
        assert decay(step) == pytest.approx(20 / (20 + math.exp(step / 20)))
    assert decay(round(20 * math.log(20))) == pytest.approx(0.5, abs=0.01)
    assert 0 <= decay(10**9) < 1e-100


DECAYS = (partial(linear, c=1e-3, floor=0.1), partial(exponential, k=0.99), partial(inverse_sigmoid, k=50.0))


@pytest.mark.parametrize("decay", DECAYS)
def test_a_decay_never_rises(decay: Decay) -> None:
    values = [decay(step) for step in range(0, 2000, 7)]
    assert values == sorted(values, reverse=True)
