"""R-Drop against a transcription of the paper's equations over whole logits."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import PAD
from softsearch.training.interface import TrainingStep, teacher_forcing
from softsearch.training.objectives.r_drop import r_drop, symmetric_divergence
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients, set_dropout

DIM, VOCAB = 6, 13
MODULE = "softsearch.models.output_layers"


def equation_4(model: Seq2Seq, alpha: float, smoothing: float) -> Tensor:
    """L = L_NLL + alpha L_KL, summed over the target tokens."""
    twice = [torch.cat((tokens, tokens)) for tokens in (BATCH.src_tokens, BATCH.tgt_tokens[:, :-1])]
    targets = BATCH.tgt_tokens[:, 1:]
    logits = [half[targets != PAD] for half in model(*twice).chunk(2)]
    nll = sum(
        functional.cross_entropy(half, targets[targets != PAD], label_smoothing=smoothing, reduction="sum")
        for half in logits
    )
    p, q = (half.softmax(-1) for half in logits)
    kl = ((p * (p.log() - q.log())).sum() + (q * (q.log() - p.log())).sum()) / 2
    assert isinstance(nll, Tensor)
    return nll + alpha * kl


@pytest.mark.parametrize(("alpha", "smoothing"), [(0.0, 0.0), (1.0, 0.0), (5.0, 0.1)])
@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
def test_is_half_of_equation_4(name: str, alpha: float, smoothing: float) -> None:
    model = small_model(name)
    set_dropout(model, 0.5)
    torch.manual_seed(3)
    expected = equation_4(model, alpha, smoothing) / 2
    torch.manual_seed(3)
    loss, tokens = r_drop(TrainingStep(model, CrossEntropy(smoothing=smoothing), BATCH), alpha=alpha)
    assert int(tokens) == TOKENS
    torch.testing.assert_close(loss.smoothed, expected)
    torch.testing.assert_close(gradients(loss.smoothed, model), gradients(expected, model))
    torch.manual_seed(3)
    torch.testing.assert_close(loss.nll, equation_4(model, 0.0, 0.0).detach() / 2)


def test_the_passes_differ_by_their_dropout() -> None:
    model = small_model("rnnsearch")
    set_dropout(model, 0.5)

    def loss(alpha: float) -> float:
        torch.manual_seed(3)
        return float(r_drop(TrainingStep(model, CrossEntropy(), BATCH), alpha=alpha)[0].smoothed.detach())

    assert loss(1.0) > loss(0.0) + 0.1


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
def test_without_dropout_it_is_the_cross_entropy(name: str, alpha: float) -> None:
    model = small_model(name).train()
    step = TrainingStep(model, CrossEntropy(smoothing=0.1), BATCH)
    expected, found = teacher_forcing(step)[0], r_drop(step, alpha=alpha)[0]
    torch.testing.assert_close(found.smoothed, expected.smoothed)
    torch.testing.assert_close(found.nll, expected.nll)
    torch.testing.assert_close(gradients(found.smoothed, model), gradients(expected.smoothed, model))


def data(tokens: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, nn.Linear]:
    generator = torch.Generator().manual_seed(tokens)
    first, second = (torch.randn(tokens, DIM, dtype=dtype, generator=generator).requires_grad_() for _ in range(2))
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return first, second, nn.Linear(DIM, VOCAB, dtype=dtype)


@pytest.mark.parametrize("tokens", [1, 3, 7])
def test_divergence_and_its_gradient_across_chunks(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.ROWS", 3)
    first, second, output = data(tokens)
    p, q = (output(features).softmax(-1) for features in (first, second))
    expected = functional.kl_div(q.log(), p, reduction="sum") + functional.kl_div(p.log(), q, reduction="sum")
    torch.testing.assert_close(symmetric_divergence(first, second, output), expected)

    def divergence(first: Tensor, second: Tensor, *_: Tensor) -> Tensor:  # of the layer's weights, which it changes
        return symmetric_divergence(first, second, output)

    assert torch.autograd.gradcheck(divergence, (first, second, output.weight, output.bias))


def test_a_frozen_output_layer_has_no_gradient() -> None:
    first, second, output = data(3)
    expected = torch.autograd.grad(symmetric_divergence(first, second, output), first)
    output.requires_grad_(False)
    torch.testing.assert_close(torch.autograd.grad(symmetric_divergence(first, second, output), first), expected)


def test_few_logits_are_alive_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, output = data(7)
    monkeypatch.setattr(f"{MODULE}.LOGITS", 2 * VOCAB + 1)
    rows, linear = [], functional.linear

    def counted(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows.append(len(features))
        return linear(features, weight, bias)

    monkeypatch.setattr(functional, "linear", counted)
    symmetric_divergence(first, second, output).backward()
    assert rows == [2, 2, 2, 2, 2, 2, 1, 1]  # and none again in the backward pass


def test_no_tokens_cost_nothing() -> None:
    first, second, output = data(0)
    assert float(symmetric_divergence(first, second, output).detach()) == 0.0


def test_mixed_precision_stays_close() -> None:
    first, second, output = data(40, torch.float32)
    inputs = (first, second, output.weight, output.bias)
    expected = symmetric_divergence(first, second, output)
    wanted = torch.autograd.grad(expected, inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = symmetric_divergence(first, second, output)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for gradient, want in zip(torch.autograd.grad(found, inputs), wanted, strict=True):
        assert gradient.dtype == torch.float32
        assert float((gradient - want).norm() / want.norm()) < 3e-2
