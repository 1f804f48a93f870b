"""Gradients along a recurrence: how much a state depends on an earlier one.

Pascanu, Mikolov & Bengio 2013 (arXiv:1211.5063), section 2; for tanh(W x + U h + b) the norm is at most
(gamma lambda_1)^k after k steps, with the largest singular value lambda_1 of U and the largest derivative gamma = 1 of
tanh (equation 7).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from softsearch.data import pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.models import Cell, ElmanCell, Recurrence, RecurrentEncoder


def gradient_flow(
    inspected: Inspected, text: HeldOutText, _: Path, *, lags: Sequence[int], sentences: int
) -> Iterator[dict[str, Any]]:
    """Yields rows of norms of d h_T / d h_{T-k} in the encoder's first layer, by lag k; T is the end of a source.

    They are means of spectral norms over the longest sources, and over resamples of these. ``curve`` is the run's name,
    or the name with ``cell path``, for d c_T / d c_{T-k} along c alone in an LSTM. ``bound`` is (gamma lambda_1)^k for
    an Elman cell.
    """
    model = inspected.model
    encoder = cast(RecurrentEncoder, model.encoder)
    cell = cast(Recurrence, encoder.layers[0]).forward_cell
    longest = sorted(text.encode(inspected.tokenizers)[0], key=len)[-sentences:]
    jacobians = [state_jacobians(cell, encoder.embedding(pad([np.asarray(ids)[-max(lags) :]]))[0]) for ids in longest]
    size = cell.hidden_dim
    paths = {inspected.name: jacobians}
    if cell.num_states > 1:
        paths[f"{inspected.name} cell path"] = [steps[:, size:, size:] for steps in jacobians]
    largest = (
        float(torch.linalg.matrix_norm(cell.recurrent_weight.detach(), 2)) if isinstance(cell, ElmanCell) else None
    )
    for curve, every in paths.items():
        norms = torch.stack([product_norms(steps, lags, size) for steps in every]).double().numpy()  # [sources, lags]
        for k, of_sources in zip(lags, norms.T, strict=True):
            mean = resampled_ratio("norm", of_sources, np.ones_like(of_sources))
            yield {"curve": curve, "k": k, **mean, "bound": None if largest is None else largest**k}


@torch.no_grad()
def state_jacobians(cell: Cell, inputs: Tensor) -> Tensor:
    """Returns d s_t / d s_{t-1} for a sentence, ``[len, states, states]``; s is h, followed by c in an LSTM.

    ``inputs`` are ``[len, input_dim]``. For constant h, an LSTM's c depends on the previous c only through the forget
    gate, so the blocks of c are the diagonal matrices of f_t.
    """

    def advance(state: Tensor, x: Tensor) -> Tensor:
        return torch.cat(cell(x, state.split(cell.hidden_dim)))

    state = torch.cat(cell.start_from(inputs.new_zeros(cell.hidden_dim)))
    jacobians = []
    for x in cell.input_projection(inputs):
        jacobians.append(torch.func.jacrev(advance)(state, x))
        state = advance(state, x)
    return torch.stack(jacobians)


def product_norms(jacobians: Tensor, lags: Sequence[int], size: int) -> Tensor:
    """Returns spectral norms of products of the last k ``jacobians`` ``[len, dim, dim]``, for each k in ``lags``.

    The norms are those of the first ``size`` rows and columns: of h, which in an LSTM also acts through c.
    """
    product, norms = torch.eye(jacobians.shape[1]).to(jacobians), []
    for step in reversed(jacobians.unbind(0)):
        product = product @ step
        norms.append(torch.linalg.matrix_norm(product[:size, :size], 2))
    return torch.stack([norms[k - 1] for k in lags])
