"""The simpler simple recurrent unit (Kim et al. 2019, aclanthology D19-5632), in the place of self-attention."""

import torch
from torch import Tensor, nn

Past = tuple[Tensor, ...]


class SSRU(nn.Module):
    """f_t = sigmoid(W_f x_t + b_f), c_t = f_t * c_{t-1} + (1 - f_t) * W x_t, h_t = ReLU(c_t).

    A step costs the same at every position: its past is c alone, ``[rows, d_model]``. Both products are done for all
    steps at once.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.forget = nn.Linear(d_model, d_model)  # W_f, b_f
        self.input = nn.Linear(d_model, d_model, bias=False)  # W
        for layer in (self.forget, self.input):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.forget.bias)

    def start(self, states: Tensor) -> Past:
        """c_0 = 0 for each of ``states`` ``[sentences, src_len, d_model]``."""
        return (self.forget.weight.new_zeros(states.shape[0], states.shape[2]),)

    def sequence(self, x: Tensor) -> Tensor:
        """All positions: ``[batch, len, d_model]`` -> the same."""
        return self.step(x, self.start(x))[0]

    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        """The positions that follow ``past``, as a rule one: ``[rows, len, d_model]`` -> the same, and the new past."""
        (c,) = past
        # Under autocast the products are in bfloat16, but not the state: its small changes would be rounded away.
        forget, new = torch.sigmoid(self.forget(x)).to(c.dtype), self.input(x).to(c.dtype)
        states = []
        for f, candidate in zip(forget.unbind(1), new.unbind(1), strict=True):
            c = torch.lerp(candidate, c, f)
            states.append(c)
        return torch.relu(torch.stack(states, dim=1)), (c,)
