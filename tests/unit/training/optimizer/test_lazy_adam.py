"""Adam for sparse gradients against PyTorch's two, and the clipping of sparse gradients."""

import copy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.training.optimizer.lazy_adam import LazyAdam, check_takes_sparse, clip_by_norm

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


@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clipping_equals_that_of_dense_gradients(max_norm: float) -> None:
    nets = [model(sparse=sparse) for sparse in (True, False)]
    for net in nets:
        (net(torch.tensor([0, 3, 3])) ** 2).sum().backward()
    expected = nn.utils.clip_grad_norm_(nets[1].parameters(), max_norm)
    torch.testing.assert_close(clip_by_norm(nets[0].parameters(), max_norm), expected)
    for found, wanted in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert found.grad is not None
        assert wanted.grad is not None
        torch.testing.assert_close(found.grad.to_dense(), wanted.grad)


def test_an_optimizer_without_sparse_gradients_is_refused() -> None:
    net = model(sparse=True)
    for optimizer in (LazyAdam(net.parameters()), torch.optim.SGD(net.parameters())):
        check_takes_sparse(optimizer, net)
    check_takes_sparse(torch.optim.Adam(net.parameters()), model(sparse=False))
    for refused, name in ((torch.optim.Adam, "Adam"), (partial(torch.optim.SGD, fused=True), "fused SGD")):
        with pytest.raises(ConfigError, match=rf"but {name} takes no sparse gradients; set optimizer=lazy_adam"):
            check_takes_sparse(refused(net.parameters()), net)
