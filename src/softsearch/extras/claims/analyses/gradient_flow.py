"""Gradients along a recurrence: how much a state depends on an earlier one (Pascanu, Mikolov & Bengio 2013, section 2).

arXiv:1211.5063; for tanh(W x + U h + b) it is at most (gamma lambda_1)^k after k steps, with lambda_1 the largest
singular value of U and gamma = 1 the largest derivative of tanh (equation 7).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from softsearch.data.dataset import pad
from softsearch.evaluation.inference import torch_model
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.cells import Cell, ElmanCell
from softsearch.models.recurrence import Recurrence
from softsearch.models.recurrent import RecurrentEncoder
from softsearch.runtime.system import System


def gradient_flow(
    system: System, text: HeldOutText, _: Path, *, lags: Sequence[int], sentences: int
) -> Iterator[dict[str, Any]]:
    """Rows of norms of d s_T / d s_{T-k} of the encoder's first layer, T being the end of a source, by lag k.

    They are spectral norms, the means over the longest sources. ``curve`` is the system's name, for the whole state s,
    or with ``cell path`` behind it, for an LSTM's path through c alone. ``bound`` is (gamma lambda_1)^k of an Elman
    cell.
    """
    model = torch_model(system.step_fn)
    encoder = cast(RecurrentEncoder, model.encoder)
    cell = cast(Recurrence, encoder.layers[0]).forward_cell
    longest = sorted(text.encode(system.tokenizers)[0], key=len)[-sentences:]
    jacobians = [state_jacobians(cell, encoder.embedding(pad([np.asarray(ids)[-max(lags) :]]))[0]) for ids in longest]
    size = cell.hidden_dim
    paths = {system.name: jacobians}
    if cell.num_states > 1:
        paths[f"{system.name} cell path"] = [steps[:, size:, size:] for steps in jacobians]
    largest = (
        float(torch.linalg.matrix_norm(cell.recurrent_weight.detach(), 2)) if isinstance(cell, ElmanCell) else None
    )
    for curve, every in paths.items():
        norms = torch.stack([product_norms(steps, lags) for steps in every]).mean(0)
        for k, norm in zip(lags, norms.tolist(), strict=True):
            yield {"curve": curve, "k": k, "norm": norm, "bound": None if largest is None else largest**k}


@torch.no_grad()
def state_jacobians(cell: Cell, inputs: Tensor) -> Tensor:
    """The d s_t / d s_{t-1} of a sentence, ``[len, states, states]``, where s has h, and an LSTM's c behind it.

    ``inputs`` are ``[len, input_dim]``. With h as it is, an LSTM's c depends on the c before it through the forget gate
    alone, so that the blocks of c are the diagonal matrices of f_t.
    """

    def advance(state: Tensor, x: Tensor) -> Tensor:
        return torch.cat(cell(x, state.split(cell.hidden_dim)))

    state = torch.cat(cell.start_from(inputs.new_zeros(cell.hidden_dim)))
    jacobians = []
    for x in cell.input_projection(inputs):
        jacobians.append(torch.func.jacrev(advance)(state, x))
        state = advance(state, x)
    return torch.stack(jacobians)


def product_norms(jacobians: Tensor, lags: Sequence[int]) -> Tensor:
    """Spectral norms of the products of the last k of ``jacobians`` ``[len, dim, dim]``, for each k of ``lags``."""
    product, norms = torch.eye(jacobians.shape[1]).to(jacobians), []
    for step in reversed(jacobians.unbind(0)):
        product = product @ step
        norms.append(torch.linalg.matrix_norm(product, 2))
    return torch.stack([norms[k - 1] for k in lags])
