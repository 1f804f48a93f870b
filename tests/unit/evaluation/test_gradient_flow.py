"""Gradients along a recurrence, against finite differences and the equation of Pascanu et al. 2013."""

from functools import partial
from typing import Any

import pytest
import torch

from softsearch.evaluation.gradient_flow import product_norms, state_jacobians
from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell

UNITS, STEPS = 3, 5


def example(kind: Any) -> tuple[Cell, torch.Tensor]:
    torch.manual_seed(4)
    return kind(2, UNITS).double().eval(), torch.randn(STEPS, 2, dtype=torch.float64)


def states(cell: Cell, inputs: torch.Tensor, start: torch.Tensor) -> list[torch.Tensor]:
    found = [start]
    for x in cell.input_projection(inputs):
        found.append(torch.cat(cell(x, found[-1].split(UNITS))))
    return found


@pytest.mark.parametrize("kind", [ElmanCell, LSTMCell, GRUCell, partial(GRUCell, reset="after"), InputForgetCell])
@torch.no_grad()
def test_products_of_jacobians_are_finite_differences(kind: Any) -> None:
    cell, inputs = example(kind)
    size = UNITS * cell.num_states
    reached = states(cell, inputs, torch.zeros(size, dtype=torch.float64))
    lag, small = 3, 1e-6
    columns = []
    for unit in torch.eye(size, dtype=torch.float64):
        ends = [states(cell, inputs[-lag:], reached[-1 - lag] + sign * small * unit)[-1] for sign in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * small))
    norm = torch.linalg.matrix_norm(torch.stack(columns, dim=1), 2)
    assert float(product_norms(state_jacobians(cell, inputs), [lag])) == pytest.approx(float(norm), rel=1e-6)


@torch.no_grad()
def test_an_elman_cell_has_the_factors_of_the_paper() -> None:
    cell, inputs = example(ElmanCell)
    for h, jacobian in zip(
        states(cell, inputs, torch.zeros(UNITS, dtype=torch.float64))[1:], state_jacobians(cell, inputs), strict=True
    ):
        torch.testing.assert_close(jacobian, torch.diag(1 - h**2) @ cell.recurrent_weight.T)


@torch.no_grad()
def test_the_cell_path_of_an_lstm_is_its_forget_gate() -> None:
    cell, inputs = example(LSTMCell)
    h = torch.zeros(UNITS, dtype=torch.float64)
    first = cell.input_projection(inputs[0]) + h @ cell.recurrent_weight
    gate = torch.sigmoid(first[UNITS : 2 * UNITS])
    torch.testing.assert_close(state_jacobians(cell, inputs)[0, UNITS:, UNITS:], torch.diag(gate))
