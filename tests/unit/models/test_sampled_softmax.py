"""The sampled softmax against the paper's equations in plain loops, and the words that it samples."""

import copy
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.loss import CrossEntropy, SampledSoftmax

DIM, VOCAB, TAU = 5, 40, 9
BATCHES = [[12, 30, 12, 3], [7], [30, 31, 32, 33], [3, 39], [12, 20, 21]]


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(DIM, VOCAB, dtype=torch.float64)


def features(tokens: int) -> Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return 2 * torch.randn(tokens, DIM, dtype=torch.float64, generator=generator)


def subsets(batches: list[list[int]], tau: int) -> list[list[int]]:
    """V' of each batch: its words, then the words seen last."""
    recent, found = list(range(tau)), []
    for batch in batches:
        now = sorted(set(batch))
        words = (now + [word for word in recent if word not in now])[: max(tau, len(now))]
        recent = words[:tau]
        found.append(sorted(words))
    return found


def importance_sampled(
    x: NDArray, weight: NDArray, b: NDArray, target: int, subset: list[int]
) -> tuple[NDArray, NDArray]:
    """Section 3.1: the gradient of log p(target) by E_k = logit k, as equations 8, 10 and 11 put it, and E."""
    E = np.array([sum(weight[k, i] * x[i] for i in range(DIM)) + b[k] for k in range(VOCAB)])
    Q = 1 / len(subset)
    omega = {k: math.exp(E[k] - math.log(Q)) for k in subset}
    gradient = np.zeros(VOCAB)
    gradient[target] += 1
    for k in subset:
        gradient[k] -= omega[k] / sum(omega.values())
    return gradient, E


def test_gradients_are_the_papers_importance_sampling() -> None:
    loss, output = SampledSoftmax(tau=TAU, smoothing=0.0), layer()
    W, b = output.weight.detach().numpy(), output.bias.detach().numpy()
    for batch, subset in zip(BATCHES, subsets(BATCHES, TAU), strict=True):
        x = features(len(batch)).requires_grad_()
        value = loss(x, torch.tensor(batch), output)
        by_x, by_W, by_b = torch.autograd.grad(value.smoothed, (x, output.weight, output.bias))
        wanted_W, wanted_b, wanted_loss = np.zeros_like(W), np.zeros_like(b), 0.0
        for row, target in enumerate(batch):
            gradient, E = importance_sampled(x[row].detach().numpy(), W, b, target, subset)
            wanted_loss -= E[target] - math.log(sum(math.exp(E[k]) for k in subset))
            wanted_W -= np.outer(gradient, x[row].detach().numpy())
            wanted_b -= gradient
            np.testing.assert_allclose(by_x[row].numpy(), -gradient @ W, atol=1e-12)
        assert float(value.smoothed.detach()) == pytest.approx(wanted_loss)
        assert float(value.nll) == pytest.approx(wanted_loss)
        np.testing.assert_allclose(by_W.numpy(), wanted_W, atol=1e-12)
        np.testing.assert_allclose(by_b.numpy(), wanted_b, atol=1e-12)


def test_gradcheck() -> None:
    class Rows(nn.Module):  # an output layer whose weights gradcheck may choose
        out_features = VOCAB

        def __init__(self, weight: Tensor, bias: Tensor) -> None:
            super().__init__()
            self.weight, self.bias = weight, bias

    def smoothed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return SampledSoftmax(tau=TAU, smoothing=0.2)(x, torch.tensor(BATCHES[0]), Rows(weight, bias)).smoothed

    output = layer()
    inputs = (features(4), output.weight.detach().clone(), output.bias.detach().clone())
    assert torch.autograd.gradcheck(smoothed, tuple(t.requires_grad_() for t in inputs))


def test_smoothing_is_spread_over_the_subset() -> None:
    loss, output = SampledSoftmax(tau=TAU, smoothing=0.3), layer()
    x, targets = features(len(BATCHES[0])), torch.tensor(BATCHES[0])
    (subset,) = subsets(BATCHES[:1], TAU)
    expected = nn.functional.cross_entropy(
        output(x)[:, subset],
        torch.tensor([subset.index(word) for word in BATCHES[0]]),
        label_smoothing=0.3,
        reduction="sum",
    )
    torch.testing.assert_close(loss(x, targets, output).smoothed, expected)


@pytest.mark.parametrize("tau", [1, 3, TAU])
def test_a_gradient_of_rows_is_the_dense_one(tau: int) -> None:
    batch = BATCHES[2]
    dense, sparse = (SampledSoftmax(tau=tau, sparse=sparse) for sparse in (False, True))
    gradients = []
    for loss in (dense, sparse):
        output = layer()
        loss(features(len(batch)), torch.tensor(batch), output).smoothed.backward()
        assert output.weight.grad is not None
        gradients.append(output.weight.grad)
    assert gradients[1].is_sparse
    assert gradients[1].coalesce().indices()[0].tolist() == subsets([batch], tau)[0]
    torch.testing.assert_close(gradients[1].to_dense(), gradients[0])


def test_a_resumed_loss_samples_the_same_words() -> None:
    output = layer()
    loss = SampledSoftmax(tau=TAU)
    for number, batch in enumerate(BATCHES):
        if number == 2:
            saved = copy.deepcopy(loss.state_dict())
        whole = loss(features(len(batch)), torch.tensor(batch), output)
    resumed = SampledSoftmax(tau=TAU)
    resumed.load_state_dict(saved)
    for batch in BATCHES[2:]:
        rest = resumed(features(len(batch)), torch.tensor(batch), output)
    assert torch.equal(rest.smoothed, whole.smoothed)
    assert torch.equal(resumed.recent_words, loss.recent_words)


@pytest.mark.parametrize("training", [False, True])
def test_evaluation_and_small_vocabularies_take_the_whole_softmax(training: bool) -> None:
    loss = SampledSoftmax(tau=VOCAB if training else TAU, smoothing=0.1).train(training)
    before, output, targets = loss.recent_words.clone(), layer(), torch.tensor(BATCHES[0])
    found = loss(features(4), targets, output)
    expected = CrossEntropy(smoothing=0.1)(features(4), targets, output)
    assert torch.equal(found.smoothed, expected.smoothed)
    assert torch.equal(found.nll, expected.nll)
    assert torch.equal(loss.recent_words, before)
