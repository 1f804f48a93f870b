"""Output layers: the loss, computed some rows or classes at a time, against PyTorch's over all log probabilities."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models import output_layers
from softsearch.models.loss import CrossEntropy, SampledSoftmax
from softsearch.models.output_layers import ClassFactored, HierarchicalSoftmax, OutputLayer

DIM, VOCAB, TOKENS = 6, 17, 11


class Softmax(OutputLayer):
    """What a linear layer does anyway."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear, self.out_features = linear, linear.out_features

    def forward(self, features: Tensor) -> Tensor:
        return self.linear(features).log_softmax(-1)


def layer(dtype: torch.dtype = torch.float64) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(DIM, VOCAB, dtype=dtype)


def factored(num_classes: int | None = None, dtype: torch.dtype = torch.float64) -> ClassFactored:
    return ClassFactored(layer(dtype), num_classes=num_classes).to(dtype)


def data(tokens: int = TOKENS, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    features = 2 * torch.randn(tokens, DIM, dtype=dtype, generator=generator)
    return features.requires_grad_(), torch.randint(VOCAB, (tokens,), generator=generator)


def check_loss(output: OutputLayer, features: Tensor, targets: Tensor, smoothing: float, expected: Tensor) -> None:
    """The layer's distributions sum to one, and its loss and gradients are those of an expected smoothed loss."""
    log_probs = output(features)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(TOKENS, dtype=torch.float64))
    found = CrossEntropy(smoothing=smoothing)(features, targets, output)
    torch.testing.assert_close(found.nll, functional.nll_loss(log_probs, targets, reduction="sum").detach())
    torch.testing.assert_close(found.smoothed, expected)
    inputs = (features, *output.parameters())
    gradients = [torch.autograd.grad(loss, inputs, retain_graph=True) for loss in (found.smoothed, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_any_layer_has_the_loss_of_a_linear_one(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_layers, "ROWS", 4)
    output, (features, targets) = Softmax(layer()), data()
    inputs = (features, *output.parameters())
    found, expected = (CrossEntropy(smoothing=smoothing)(features, targets, o) for o in (output, output.linear))
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(loss.smoothed, inputs) for loss in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_few_rows_are_alive_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_layers, "LOGITS", 4 * VOCAB + 1)
    output, rows = Softmax(layer()), []
    output.linear.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    loss = CrossEntropy()(*data(), output)
    assert rows == [4, 4, 3]
    loss.smoothed.backward()
    assert sorted(rows[3:]) == [3, 4, 4]  # they were not kept
    assert not loss.nll.requires_grad


@pytest.mark.parametrize(
    ("num_classes", "sizes"),
    [(None, [5, 5, 5, 2]), (1, [17]), (2, [9, 8]), (7, [3, 3, 3, 3, 3, 2]), (VOCAB, [1] * VOCAB)],
)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_factored_by_classes(num_classes: int | None, sizes: list[int], smoothing: float) -> None:
    output, (features, targets) = factored(num_classes), data()
    expected = torch.zeros((), dtype=torch.float64)
    for x, target in zip(features, targets.tolist(), strict=True):
        begin, number = 0, 0
        while begin + sizes[number] <= target:
            begin, number = begin + sizes[number], number + 1
        words = output.word_projection(x)[begin : begin + sizes[number]]
        for logits, index in ((output.class_projection(x), number), (words, target - begin)):
            expected = expected + functional.cross_entropy(logits, torch.tensor(index), label_smoothing=smoothing)
    check_loss(output, features, targets, smoothing, expected)


def test_only_the_target_s_class_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    output, (features, _) = factored(), data()
    products, linear = [], functional.linear

    def counted(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        products.append((len(x), len(weight)))
        return linear(x, weight, bias)

    monkeypatch.setattr(functional, "linear", counted)
    CrossEntropy()(features, torch.tensor([16, 0, 4, 16, 1, 0, 15, 2, 3, 4, 0]), output)
    assert products == [(11, 4), (8, 5), (3, 2)]  # classes of all tokens, words of the first and the last class


@pytest.mark.parametrize("vocab", [2, 3, 8, VOCAB])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_decisions_on_the_way_to_a_word(vocab: int, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract's transcription has the probabilities; here is the loss, from the target's path alone."""
    monkeypatch.setattr(output_layers, "ROWS", 4)
    torch.manual_seed(0)
    output = HierarchicalSoftmax(nn.Linear(DIM, vocab)).double()
    features, targets = data()
    targets = targets % vocab
    expected = torch.zeros((), dtype=torch.float64)
    for x, target in zip(features, targets.tolist(), strict=True):
        node = vocab + target
        while node > 1:
            left = output.node_projection(x)[node // 2 - 1]
            both = torch.stack((left, torch.zeros_like(left)))
            expected = expected + functional.cross_entropy(both, torch.tensor(node % 2), label_smoothing=smoothing)
            node //= 2
    check_loss(output, features, targets, smoothing, expected)


def test_no_tokens_cost_nothing() -> None:
    for output in (factored(), HierarchicalSoftmax(layer()).double(), Softmax(layer())):
        assert float(CrossEntropy()(*data(0), output).smoothed.detach()) == 0.0


def test_mixed_precision_stays_close() -> None:
    output, (features, targets) = factored(dtype=torch.float32), data(40, torch.float32)
    expected = CrossEntropy()(features, targets, output)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = CrossEntropy()(features, targets, output)
        assert output(features).dtype == torch.float32
    assert found.smoothed.dtype == found.nll.dtype == torch.float32
    torch.testing.assert_close(found.smoothed, expected.smoothed, rtol=2e-2, atol=0)


def test_more_classes_than_words_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_classes is 18, expected at most the 17 pieces"):
        factored(VOCAB + 1)


def test_a_sampled_softmax_needs_a_linear_layer() -> None:
    with pytest.raises(ConfigError, match=r"loss=sampled_softmax needs a linear .* has ClassFactored; set loss=cross"):
        SampledSoftmax(tau=5)(*data(), factored())
