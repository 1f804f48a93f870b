"""The cells against the papers' equations, written out in NumPy, and their gradients."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell, Reset, gru
from softsearch.models.recurrence import _KERNELS
from tests.support.transcriptions import cells as transcription
from tests.support.transcriptions.equations import Array, Weights, sigmoid

BATCH, INPUT, HIDDEN = 3, 4, 5


def blocks(cell: Cell, recurrent: Tensor, count: int) -> list[tuple[Array, Array, Array]]:
    """(W, U, b) of each of a cell's blocks."""
    W, b = (np.split(t.detach().numpy(), count) for t in (cell.input_projection.weight, cell.input_projection.bias))
    U = [u.T for u in np.split(recurrent.detach().numpy(), count, axis=1)]
    return list(zip(W, U, b, strict=True))


def make(kind: Any, reset: Reset = "before") -> Any:
    torch.manual_seed(0)
    cls = {"rnn": ElmanCell, "lstm": LSTMCell, "gru": partial(GRUCell, reset=reset), "input_forget": InputForgetCell}[
        kind
    ]
    cell = cls(INPUT, HIDDEN).double()
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.7)
    return cell


def normal(*shape: int, seed: int, grad: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=grad)


@pytest.fixture
def x() -> Tensor:
    return normal(BATCH, INPUT, seed=1)


@pytest.fixture
def h() -> Tensor:
    return normal(BATCH, HIDDEN, seed=2)


@pytest.fixture
def c() -> Tensor:
    return normal(BATCH, HIDDEN, seed=3)


@pytest.mark.parametrize(
    ("kind", "reset"),
    [("rnn", "before"), ("lstm", "before"), ("input_forget", "before"), ("gru", "before"), ("gru", "after")],
)
def test_every_cell_equals_its_equations(x: Tensor, h: Tensor, c: Tensor, kind: str, reset: Reset) -> None:
    cell = make(kind, reset)
    states = (h, c)[: cell.num_states]
    found = cell(cell.input_projection(x), states)
    w = Weights({name: parameter.detach().numpy() for name, parameter in cell.named_parameters()})
    for row in range(BATCH):
        x_row = w.affine("input_projection", x[row].numpy())
        before = tuple(state[row].numpy() for state in states)
        expected = transcription.cell(w, {"cell": kind, "reset": reset}, x_row, before)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[row].detach().numpy(), other, atol=1e-12)
    if type(cell) in _KERNELS:
        assert all(weight.is_contiguous() for weight in cell.kernel_weights()), "cuDNN refuses others"


def torch_gru(cell: GRUCell) -> nn.GRUCell:
    """PyTorch's cell with the same weights; its z weights the old state, so it gets -z."""
    theirs = nn.GRUCell(INPUT, HIDDEN).double()
    z, r, candidate = cell.input_projection.weight.chunk(3)
    b_z, b_r, b = cell.input_projection.bias.chunk(3)
    U_z, U_r = (u.T for u in cell.recurrent_gate_weight.chunk(2, dim=1))
    with torch.no_grad():
        theirs.weight_ih.copy_(torch.cat((r, -z, candidate)))
        theirs.bias_ih.copy_(torch.cat((b_r, -b_z, b)))
        theirs.weight_hh.copy_(torch.cat((U_r, -U_z, cell.recurrent_candidate_weight.T)))
        theirs.bias_hh.zero_()
        if cell.recurrent_candidate_bias is not None:
            theirs.bias_hh[2 * HIDDEN :] = cell.recurrent_candidate_bias
    return theirs


def test_reset_gate_acts_where_torch_has_it_not(x: Tensor, h: Tensor) -> None:
    cell = make("gru")
    (found,) = cell(cell.input_projection(x), (h,))
    assert (found - torch_gru(cell)(x, h)).abs().amax(-1).min() > 1e-3


def test_reset_after_is_torchs(x: Tensor, h: Tensor) -> None:
    cell = make("gru", "after")
    (found,) = cell(cell.input_projection(x), (h,))
    torch.testing.assert_close(found, torch_gru(cell)(x, h), rtol=0, atol=1e-12)


def test_both_forms_are_one_while_nothing_is_reset(x: Tensor, h: Tensor) -> None:
    cell = make("gru")
    with torch.no_grad():
        cell.input_projection.bias[HIDDEN : 2 * HIDDEN] = (
            100.0  # r = 1: before or after the product makes no difference
        )
    (found,) = cell(cell.input_projection(x), (h,))
    torch.testing.assert_close(found, torch_gru(cell)(x, h), rtol=0, atol=1e-12)


def test_lstm_gradients_by_the_formulas_of_backpropagation(x: Tensor, h: Tensor, c: Tensor) -> None:
    cell = make("lstm")
    inputs = [t.requires_grad_() for t in (x, h, c)]
    new_h, new_c = cell(cell.input_projection(x), (h, c))
    dh, dc = normal(BATCH, HIDDEN, seed=4), normal(BATCH, HIDDEN, seed=5)
    wanted = [*inputs, cell.input_projection.weight, cell.recurrent_weight, cell.input_projection.bias]
    found = torch.autograd.grad((new_h, new_c), wanted, (dh, dc))
    arrays = [t.detach().numpy() for t in (x, h, c, dh, dc)]
    for one, other in zip(found, lstm_backward(cell, *arrays), strict=True):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-12)


def lstm_backward(cell: LSTMCell, x: Array, h: Array, c: Array, dh: Array, dc: Array) -> list[Array]:
    """Gradients of x, h, c, all W, all U (transposed, side by side) and all b, given those of h' and c'."""
    parts = blocks(cell, cell.recurrent_weight, 4)
    dx, dh_before, dc_before = np.zeros_like(x), np.zeros_like(h), np.zeros_like(c)
    dW, dU, db = ([np.zeros_like(part[k]) for part in parts] for k in range(3))
    for row in range(len(h)):
        a_i, a_f, a_o, a_g = (W @ x[row] + U @ h[row] + b for W, U, b in parts)
        i, f, o, g = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), np.tanh(a_g)
        t = np.tanh(f * c[row] + i * g)
        d_c = dc[row] + dh[row] * o * (1 - t**2)  # of c', through h' too
        d_o = dh[row] * t
        d_i, d_f, d_g = d_c * g, d_c * c[row], d_c * i
        dc_before[row] = d_c * f
        d_a = [d_i * i * (1 - i), d_f * f * (1 - f), d_o * o * (1 - o), d_g * (1 - g**2)]
        for k, ((W, U, _), d) in enumerate(zip(parts, d_a, strict=True)):
            dx[row] += W.T @ d
            dh_before[row] += U.T @ d
            dW[k] += np.outer(d, x[row])
            dU[k] += np.outer(d, h[row])
            db[k] += d
    return [dx, dh_before, dc_before, np.concatenate(dW), np.concatenate([u.T for u in dU], 1), np.concatenate(db)]


@pytest.mark.parametrize(
    ("kind", "reset"),
    [("rnn", "before"), ("lstm", "before"), ("gru", "before"), ("gru", "after"), ("input_forget", "before")],
)
def test_gradients(kind: Any, reset: Reset) -> None:
    cell = make(kind, reset)
    state = tuple(normal(BATCH, HIDDEN, seed=seed, grad=True) for seed in range(cell.num_states))
    x = normal(BATCH, INPUT, seed=9, grad=True)
    assert torch.autograd.gradcheck(lambda x, *state: cell(cell.input_projection(x), state), (x, *state))
    real = torch.tensor([[True], [False], [True]])
    assert torch.autograd.gradcheck(lambda x, *state: cell(cell.input_projection(x), state, real), (x, *state))


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru", "input_forget"])
def test_every_cell_holds_its_state(kind: Any, x: Tensor) -> None:
    cell = make(kind)
    state = tuple(normal(BATCH, HIDDEN, seed=seed) for seed in range(cell.num_states))
    held = cell(cell.input_projection(x), state, torch.tensor([[True], [False], [True]]))
    moved = cell(cell.input_projection(x), state)
    for found, before, after in zip(held, state, moved, strict=True):
        assert torch.equal(found[1], before[1])
        assert torch.equal(found[[0, 2]], after[[0, 2]])


def test_stacked_cells_run_apart(x: Tensor, h: Tensor) -> None:
    cell, other = make("gru"), GRUCell(INPUT, HIDDEN).double()
    stacked = gru(
        torch.stack((cell.input_projection(x), other.input_projection(x))),
        torch.stack((h, -h)),
        torch.stack((cell.recurrent_gate_weight, other.recurrent_gate_weight)),
        torch.stack((cell.recurrent_candidate_weight, other.recurrent_candidate_weight)),
    )
    expected = torch.stack((*cell(cell.input_projection(x), (h,)), *other(other.input_projection(x), (-h,))))
    torch.testing.assert_close(stacked, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru", "input_forget"])
def test_the_state_keeps_its_precision_under_autocast(kind: Any) -> None:
    cell = make(kind).float()
    state = tuple(torch.zeros(BATCH, HIDDEN) for _ in range(cell.num_states))
    with torch.autocast("cpu", torch.bfloat16):
        x = cell.input_projection(torch.ones(BATCH, INPUT))
        assert x.dtype == torch.bfloat16
        assert {tensor.dtype for tensor in cell(x, state)} == {torch.float32}


def test_recurrent_matrices_start_orthogonal() -> None:
    gru_cell, lstm_cell = GRUCell(INPUT, HIDDEN), LSTMCell(INPUT, HIDDEN)
    for square in (
        *gru_cell.recurrent_gate_weight.chunk(2, dim=1),
        gru_cell.recurrent_candidate_weight,
        *lstm_cell.recurrent_weight.chunk(4, dim=1),
    ):
        torch.testing.assert_close(square @ square.T, torch.eye(HIDDEN), rtol=0, atol=1e-5)
    assert lstm_cell.input_projection.bias.chunk(4)[1].tolist() == [1.0] * HIDDEN  # of the forget gate
