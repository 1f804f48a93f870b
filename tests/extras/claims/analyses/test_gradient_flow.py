"""Gradients along a recurrence, against finite differences and the equation of Pascanu et al. 2013."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from softsearch.evaluation.test_set import HeldOutText
from softsearch.extras.claims.analyses.gradient_flow import gradient_flow, product_norms, state_jacobians
from softsearch.extras.claims.inspected import Inspected
from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell
from softsearch.models.recurrence import Recurrence
from softsearch.models.recurrent import RecurrentEncoder
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import EOS

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
    product = torch.stack(columns, dim=1)
    for part in {size, UNITS}:  # the whole state, and h
        norm = torch.linalg.matrix_norm(product[:part, :part], 2)
        assert float(product_norms(state_jacobians(cell, inputs), [lag], part)) == pytest.approx(float(norm), rel=1e-6)


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


class Numbers:
    """A tokenizer of token ids written out."""

    fingerprint, joiner, reads_several_sources = "numbers", "", True

    def encode(self, line: str) -> list[int]:
        return [*map(int, line.split())]

    def names(self) -> list[str]:
        return []


@torch.no_grad()
def test_rows_are_norms_at_the_end_of_the_longest_source_and_the_bound_of_the_paper() -> None:
    model, lags, ids = small_model("rnn", seed=2), [1, 3, 4], [5, 9, 6, 16, 7, 12, 4, 8, 11]
    tokenizers: Any = (Numbers(), Numbers())
    source: Any = None
    inspected = Inspected(name="rnn", model=model, tokenizers=tokenizers, source=source)
    text = HeldOutText("test", [" ".join(map(str, ids)), "5 6"], ["", ""], "plain", "en", "de")
    rows = list(gradient_flow(inspected, text, Path(), lags=lags, sentences=1))

    encoder = cast(RecurrentEncoder, model.encoder)
    cell = cast(Recurrence, encoder.layers[0]).forward_cell
    assert cell.input_projection.bias is not None
    w, b, u = (p.numpy() for p in (cell.input_projection.weight, cell.input_projection.bias, cell.recurrent_weight))
    assert np.linalg.matrix_rank(u) == len(u) > 1
    h, jacobians = np.zeros(len(u)), []
    for x in encoder.embedding(torch.tensor([*ids[-max(lags) :], EOS])).numpy():  # a source ends with EOS
        h = np.tanh(w @ x + b + h @ u)
        jacobians.append(np.diag(1 - h**2) @ u.T)
    for k, row in zip(lags, rows, strict=True):
        product = np.linalg.multi_dot([np.eye(len(u)), *jacobians[: -k - 1 : -1]])
        bound = np.linalg.svd(u, compute_uv=False)[0] ** k
        assert (row["curve"], row["k"]) == ("rnn", k)
        assert (row["norm"], row["bound"]) == pytest.approx((np.linalg.norm(product, 2), bound), rel=1e-6)
        resampled = np.array(row["norm_resampled"].split(), dtype=np.float64)
        assert row["sentences"] == 1
        np.testing.assert_allclose(resampled, row["norm"], rtol=1e-4)  # of one source

    lines = text.sources
    both, *each = (
        [row["norm"] for row in gradient_flow(inspected, part, Path(), lags=[1, 3], sentences=2)]
        for part in (text, *(replace(text, sources=[line], references=[""]) for line in lines))
    )
    np.testing.assert_allclose(both, np.mean(each, axis=0), rtol=1e-6)
