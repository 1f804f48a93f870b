"""Adam for sparse gradients against PyTorch's two, and the clipping of sparse gradients."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from softsearch.training.optimizer.lazy_adam import LazyAdam, clip_by_norm, clip_by_value

OPTIONS = {"lr": 0.1, "betas": (0.8, 0.95)}
BATCHES = [[0, 1, 2, 3, 3], [3, 1, 2, 0], [0, 0, 1, 2, 3]]  # every row in each


def model(*, sparse: bool) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(4, 3, sparse=sparse), nn.Linear(3, 2)).double()


def train(net: nn.Module, optimizer: torch.optim.Optimizer, batches: list[list[int]]) -> None:
    for batch in batches:
        optimizer.zero_grad()
        (net(torch.tensor(batch)) ** 2).sum().backward()
        optimizer.step()


def test_where_every_row_has_a_gradient_it_is_adam() -> None:
    lazy, adam = model(sparse=True), model(sparse=False)
    train(lazy, LazyAdam(lazy.parameters(), **OPTIONS), BATCHES)
    train(adam, torch.optim.Adam(adam.parameters(), **OPTIONS), BATCHES)
    for found, expected in zip(lazy.parameters(), adam.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


def test_rows_move_as_in_sparse_adam() -> None:
    batches = [[0, 1], [1, 1, 2], [0, 2], [2]]
    lazy, sparse = model(sparse=True)[0], model(sparse=True)[0]
    untouched = lazy.weight[3].clone()
    train(lazy, LazyAdam(lazy.parameters(), **OPTIONS, eps=1e-30), batches)
    train(sparse, torch.optim.SparseAdam(sparse.parameters(), **OPTIONS, eps=1e-30), batches)  # its eps weighs less
    torch.testing.assert_close(lazy.weight, sparse.weight)
    assert torch.equal(lazy.weight[3], untouched)


def test_a_resumed_optimizer_goes_on() -> None:
    net = model(sparse=True)
    optimizer = LazyAdam(net.parameters(), **OPTIONS)
    train(net, optimizer, BATCHES[:1])
    other = copy.deepcopy(net)
    resumed = LazyAdam(other.parameters(), **OPTIONS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(net, optimizer, [[1], [2, 0]])
    train(other, resumed, [[1], [2, 0]])
    for found, expected in zip(other.parameters(), net.parameters(), strict=True):
        assert torch.equal(found, expected)


def test_a_closure_is_called_with_gradients() -> None:
    net = model(sparse=True)
    optimizer, before = LazyAdam(net.parameters()), net[0].weight.detach().clone()

    def closure() -> Tensor:
        loss: Tensor = net(torch.tensor([2])).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).requires_grad
    assert (net[0].weight != before).any(dim=1).tolist() == [False, False, True, False]


@pytest.mark.parametrize("max_norm", [0.5, 1e6, math.inf])
def test_clipping_by_norm_equals_that_of_dense_gradients(max_norm: float) -> None:
    found, expected = with_gradients()
    norm = nn.utils.clip_grad_norm_(expected.parameters(), max_norm)
    torch.testing.assert_close(clip_by_norm(found.parameters(), max_norm), norm)
    assert_same_gradients(found, expected)


@pytest.mark.parametrize("limit", [0.1, 1e6])
def test_clipping_by_value_equals_that_of_dense_gradients(limit: float) -> None:
    found, expected = with_gradients()
    nn.utils.clip_grad_value_(expected.parameters(), limit)
    clip_by_value(found.parameters(), limit)
    assert_same_gradients(found, expected)


def with_gradients() -> tuple[nn.Sequential, nn.Sequential]:
    """A model with sparse and one with dense gradients, where a row comes from two words."""
    nets = model(sparse=True), model(sparse=False)
    for net in nets:
        (net(torch.tensor([0, 3, 3])) ** 2).sum().backward()
    return nets


def assert_same_gradients(found: nn.Module, expected: nn.Module) -> None:
    for ours, theirs in zip(found.parameters(), expected.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad.to_dense(), theirs.grad)
