"""The chunked cross-entropy against PyTorch's."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models import output_layers
from softsearch.models.loss import CrossEntropy
from softsearch.models.output_layers import ROWS

DIM, VOCAB = 6, 13


def layer(dtype: torch.dtype = torch.float64) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(DIM, VOCAB, dtype=dtype)


def data(tokens: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    features = 2 * torch.randn(tokens, DIM, dtype=dtype, generator=generator)
    return features.requires_grad_(), torch.randint(VOCAB, (tokens,), generator=generator)


def reference(features: Tensor, targets: Tensor, output: nn.Linear, smoothing: float) -> Tensor:
    return functional.cross_entropy(output(features), targets, label_smoothing=smoothing, reduction="sum")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 17])
def test_equals_torch(tokens: int, smoothing: float) -> None:
    output, (features, targets) = layer(), data(tokens)
    expected = reference(features, targets, output, smoothing)
    wanted = torch.autograd.grad(0.37 * expected, (features, output.weight, output.bias))
    found = CrossEntropy(smoothing=smoothing)(features, targets, output)
    gradients = torch.autograd.grad(0.37 * found.smoothed, (features, output.weight, output.bias))
    torch.testing.assert_close(found.smoothed, expected)
    torch.testing.assert_close(found.nll, reference(features, targets, output, 0.0).detach())
    for gradient, want in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, want)


def test_gradients_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_layers, "ROWS", 3)
    output, (features, targets) = layer(), data(7)
    cross_entropy = CrossEntropy(smoothing=0.2)

    def smoothed(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        theirs = nn.Linear(DIM, VOCAB, dtype=torch.float64)
        del theirs.weight, theirs.bias
        theirs.weight, theirs.bias = weight, bias  # type: ignore[assignment]
        return cross_entropy(features, targets, theirs).smoothed

    inputs = (features, output.weight.detach().requires_grad_(), output.bias.detach().requires_grad_())
    assert torch.autograd.gradcheck(smoothed, inputs)


@pytest.mark.parametrize("autocast", [True, False])
def test_mixed_precision_stays_close(autocast: bool) -> None:
    output, (features, targets) = layer(torch.float32), data(ROWS + 9, torch.float32)
    expected = reference(features, targets, output, 0.1)
    wanted = torch.autograd.grad(expected, (features, output.weight, output.bias))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found = CrossEntropy(smoothing=0.1, bfloat16=not autocast)(features, targets, output)
    assert float(found.nll) != float(CrossEntropy()(features, targets, output).nll)
    gradients = torch.autograd.grad(found.smoothed, (features, output.weight, output.bias))
    assert found.smoothed.dtype == torch.float32
    torch.testing.assert_close(found.smoothed, expected, rtol=5e-3, atol=0)
    for gradient, want in zip(gradients, wanted, strict=True):
        assert gradient.dtype == torch.float32
        assert float((gradient - want).norm() / want.norm()) < 2e-2


def test_features_of_lower_precision_get_gradients_of_theirs() -> None:
    output, (features, targets) = layer(torch.float32), data(5, torch.float32)
    half = features.detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        CrossEntropy()(half, targets, output).smoothed.backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.bfloat16
    assert output.weight.grad is not None
    assert output.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_nothing_is_rounded(mode: type[torch.no_grad]) -> None:
    output, (features, targets) = layer(), data(5)
    expected = reference(features, targets, output, 0.1).detach()
    with mode():
        found = CrossEntropy(smoothing=0.1, bfloat16=True)(features, targets, output)
    assert not found.smoothed.requires_grad
    torch.testing.assert_close(found.smoothed, expected)


def test_evaluation_computes_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    output, (features, targets) = layer(), data(5)
    products = []
    monkeypatch.setattr(torch, "mm", lambda *args, **kwargs: products.append(args))
    with torch.no_grad():
        CrossEntropy()(features, targets, output)
    assert not products


def test_nll_carries_no_gradient() -> None:
    output, (features, targets) = layer(), data(5)
    found = CrossEntropy(smoothing=0.1)(features, targets, output)
    assert found.smoothed.requires_grad
    assert not found.nll.requires_grad


def test_no_tokens_cost_nothing() -> None:
    output, (features, targets) = layer(), data(0)
    found = CrossEntropy()(features, targets, output)
    found.smoothed.backward()
    assert float(found.smoothed.detach()) == float(found.nll) == 0.0
    assert output.weight.grad is not None
    assert output.weight.grad.abs().max() == 0


@pytest.mark.parametrize(("logits", "rows"), [(2 * VOCAB + 1, [2, 2, 2, 2]), (2**24, [32])])
def test_rows_at_a_time_are_few_for_a_large_vocabulary_and_filled_up_for_a_small_one(
    monkeypatch: pytest.MonkeyPatch, logits: int, rows: list[int]
) -> None:
    output, (features, targets) = layer(), data(7)
    expected, chunks, addmm = reference(features, targets, output, 0.1), [], torch.addmm

    def counted(bias: Tensor, x: Tensor, weight: Tensor, **options: Any) -> Any:
        chunks.append(len(x))
        return addmm(bias, x, weight, **options)

    monkeypatch.setattr(output_layers, "LOGITS", logits)
    monkeypatch.setattr(torch, "addmm", counted)
    torch.testing.assert_close(CrossEntropy(smoothing=0.1)(features, targets, output).smoothed, expected)
    assert chunks == rows


def test_an_impossible_target_has_an_exact_gradient_and_in_evaluation_an_exact_loss() -> None:
    output = nn.Linear(1, 3)
    with torch.no_grad():
        output.weight.zero_()
        output.bias.copy_(torch.tensor([0.0, -1000.0, 0.0]))
    features, target = torch.ones(1, 1), torch.tensor([1])
    with torch.no_grad():
        assert CrossEntropy(smoothing=0)(features, target, output).nll.item() == pytest.approx(1000 + math.log(2))
    loss = CrossEntropy(smoothing=0)(features, target, output)
    loss.smoothed.backward()
    assert loss.nll.item() == pytest.approx(-math.log(torch.finfo(torch.float32).tiny))
    assert output.bias.grad is not None
    torch.testing.assert_close(output.bias.grad, torch.tensor([0.5, -1.0, 0.5]))


@pytest.mark.parametrize("rows", [3, ROWS])
def test_tokens_that_are_not_real_do_not_count(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(output_layers, "ROWS", rows)
    output, (features, targets) = layer(), data(11)
    real = torch.tensor([True, False, True, True, False, False, False, True, True, False, True])
    cross_entropy, inputs = CrossEntropy(smoothing=0.2), (features, output.weight, output.bias)
    expected = cross_entropy(features[real], targets[real], output)
    found = cross_entropy.from_linear(output.weight, output.bias, features, targets, real)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    wanted, gradients = (torch.autograd.grad(0.37 * loss.smoothed, inputs) for loss in (expected, found))
    torch.testing.assert_close(gradients, wanted, rtol=1e-10, atol=1e-14)
