"""The GRU against the paper's equations, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from softsearch.models.cells import GRUCell, gru

Array = NDArray[np.float64]
BATCH, INPUT, HIDDEN = 3, 4, 5


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def paper_gru(cell: GRUCell, x: Array, h: Array) -> Array:
    """Cho et al. 2014, equations 5 to 8, with z on the candidate as in Bahdanau et al. 2015."""
    W_z, W_r, W = np.split(cell.input.weight.detach().numpy(), 3)
    b_z, b_r, b = np.split(cell.input.bias.detach().numpy(), 3)
    U_z, U_r = (u.T for u in np.split(cell.gates.detach().numpy(), 2, axis=1))
    U = cell.candidate.detach().numpy().T
    new = np.empty_like(h)
    for row in range(len(h)):
        z = sigmoid(W_z @ x[row] + U_z @ h[row] + b_z)
        r = sigmoid(W_r @ x[row] + U_r @ h[row] + b_r)
        candidate = np.tanh(W @ x[row] + U @ (r * h[row]) + b)
        new[row] = (1 - z) * h[row] + z * candidate
    return new


def torch_gru(cell: GRUCell) -> nn.GRUCell:
    """PyTorch's cell with the same weights; its z weights the old state, so it gets -z."""
    theirs = nn.GRUCell(INPUT, HIDDEN).double()
    z, r, candidate = cell.input.weight.chunk(3)
    b_z, b_r, b = cell.input.bias.chunk(3)
    U_z, U_r = (u.T for u in cell.gates.chunk(2, dim=1))
    with torch.no_grad():
        theirs.weight_ih.copy_(torch.cat((r, -z, candidate)))
        theirs.bias_ih.copy_(torch.cat((b_r, -b_z, b)))
        theirs.weight_hh.copy_(torch.cat((U_r, -U_z, cell.candidate.T)))
        theirs.bias_hh.zero_()
    return theirs


@pytest.fixture
def cell() -> GRUCell:
    torch.manual_seed(0)
    cell = GRUCell(INPUT, HIDDEN).double()
    nn.init.normal_(cell.input.bias)
    return cell


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(BATCH, INPUT, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def h() -> torch.Tensor:
    return torch.randn(BATCH, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def test_equals_the_paper(cell: GRUCell, x: torch.Tensor, h: torch.Tensor) -> None:
    found = cell(cell.input(x), h).detach().numpy()
    np.testing.assert_allclose(found, paper_gru(cell, x.numpy(), h.numpy()), atol=1e-12)


def test_reset_gate_acts_where_torch_has_it_not(cell: GRUCell, x: torch.Tensor, h: torch.Tensor) -> None:
    difference = (cell(cell.input(x), h) - torch_gru(cell)(x, h)).abs()
    assert difference.amax(-1).min() > 1e-3


def test_equals_torch_while_nothing_is_reset(cell: GRUCell, x: torch.Tensor, h: torch.Tensor) -> None:
    with torch.no_grad():
        cell.input.bias[HIDDEN : 2 * HIDDEN] = 100.0  # r = 1: before or after the product makes no difference
    torch.testing.assert_close(cell(cell.input(x), h), torch_gru(cell)(x, h), rtol=0, atol=1e-12)


def test_mask_holds_the_state(cell: GRUCell, x: torch.Tensor, h: torch.Tensor) -> None:
    mask = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)
    found = gru(cell.input(x), h, cell.gates, cell.candidate, mask)
    moved = gru(cell.input(x), h, cell.gates, cell.candidate)
    assert torch.equal(found[1], h[1])
    assert torch.equal(found[[0, 2]], moved[[0, 2]])


def test_stacked_cells_run_apart(cell: GRUCell, x: torch.Tensor, h: torch.Tensor) -> None:
    other = GRUCell(INPUT, HIDDEN).double()
    stacked = gru(
        torch.stack((cell.input(x), other.input(x))),
        torch.stack((h, -h)),
        torch.stack((cell.gates, other.gates)),
        torch.stack((cell.candidate, other.candidate)),
    )
    expected = torch.stack((cell(cell.input(x), h), other(other.input(x), -h)))
    torch.testing.assert_close(stacked, expected, rtol=0, atol=1e-12)


def test_gradients(h: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(3)
    shapes = ((BATCH, 3 * HIDDEN), (BATCH, HIDDEN), (HIDDEN, 2 * HIDDEN), (HIDDEN, HIDDEN))
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True) for shape in shapes]
    mask = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(gru, (*inputs, mask))


def test_recurrent_matrices_start_orthogonal() -> None:
    cell = GRUCell(INPUT, HIDDEN)
    for square in (*cell.gates.chunk(2, dim=1), cell.candidate):
        torch.testing.assert_close(square @ square.T, torch.eye(HIDDEN), rtol=0, atol=1e-5)
