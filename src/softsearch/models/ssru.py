"""Recurrence in place of a Transformer decoder's self-attention."""

import torch
from torch import Tensor, nn

from softsearch.models.interface import Tensors
from softsearch.models.layers import xavier


class SSRU(nn.Module):
    """The simpler simple recurrent unit (Kim et al. 2019, aclanthology D19-5632), in place of self-attention.

    f_t = sigmoid(W_f x_t + b_f), c_t = f_t * c_{t-1} + (1 - f_t) * W x_t, h_t = ReLU(c_t). A step costs the same at
    every position: its past is only c, ``[rows, d_model]``. Both products are done for all steps at once.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.forget_projection = nn.Linear(d_model, d_model)  # W_f, b_f
        self.input_projection = nn.Linear(d_model, d_model, bias=False)  # W
        for layer in (self.forget_projection, self.input_projection):
            xavier(layer)

    def start(self, states: Tensor) -> Tensors:
        """c_0 = 0 for each sentence of ``states`` ``[sentences, src_len, d_model]``."""
        return (self.forget_projection.weight.new_zeros(states.shape[0], states.shape[2]),)

    def sequence(self, x: Tensor, angles: Tensor | None = None) -> Tensor:
        """Runs over all positions: ``[batch, len, d_model]`` -> the same; angles are not read."""
        return self._follow(x, *self.start(x))[0]

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None = None, angles: Tensor | None = None
    ) -> tuple[Tensor, Tensors]:
        """Runs the position after ``past``: ``[rows, d_model]`` -> the same, and the new past; slots are not read."""
        y, c = self._follow(x[:, None], *past)
        return y[:, 0], (c,)

    def _follow(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Runs the positions ``x`` ``[rows, len, d_model]`` from ``c`` on; returns h, shaped as x, and the last c."""
        # Under autocast the products are in bfloat16, but not the state: its small changes would be rounded away.
        forget, new = torch.sigmoid(self.forget_projection(x)).to(c.dtype), self.input_projection(x).to(c.dtype)
        states = []
        for f, candidate in zip(forget.unbind(1), new.unbind(1), strict=True):
            c = torch.lerp(candidate, c, f)
            states.append(c)
        return torch.relu(torch.stack(states, dim=1)), c
