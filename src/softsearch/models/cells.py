"""Recurrent cells: pure functions of (input, state), with everything that does not depend on the state hoisted out."""

import torch
from torch import Tensor, nn


class GRUCell(nn.Module):
    """The gated recurrent unit as Cho et al. 2014 wrote it (arXiv:1406.1078, equations 5 to 8).

    r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), h~ = tanh(W x + U (r * h) + b), h' = (1 - z) * h + z * h~
    (Bahdanau et al. 2015, appendix A.1.1: z weights the candidate). The reset gate acts *before* the matrix product;
    ``torch.nn.GRU`` and cuDNN apply it after, and let 1 - z weight the candidate.

    Args:
        input_dim: width of x.
        hidden_dim: width of h.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.input = nn.Linear(input_dim, 3 * hidden_dim)  # rows: z, r, candidate
        self.gates = nn.Parameter(torch.empty(hidden_dim, 2 * hidden_dim))  # U_z, U_r, so that h @ gates
        self.candidate = nn.Parameter(torch.empty(hidden_dim, hidden_dim))  # U, so that (r * h) @ candidate
        for weight in self.input.weight.data.chunk(3):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.input.bias)
        for square in (*self.gates.data.chunk(2, dim=1), self.candidate.data):
            nn.init.orthogonal_(square)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """``x`` is :attr:`input` of the input, ``[..., 3 * hidden_dim]``; ``h`` ``[..., hidden_dim]`` -> h'."""
        return gru(x, h, self.gates, self.candidate)


def gru(x: Tensor, h: Tensor, gates: Tensor, candidate: Tensor, mask: Tensor | None = None) -> Tensor:
    """One step of :class:`GRUCell`, also for several cells stacked on the leading axes.

    Args:
        x: W x + b for z, r and the candidate, ``[..., batch, 3 * hidden]``.
        h: ``[..., batch, hidden]``.
        gates: U_z and U_r, ``[..., hidden, 2 * hidden]``.
        candidate: U, ``[..., hidden, hidden]``.
        mask: ``[..., batch, 1]``, 0 where the state must stay as it is.
    """
    x_gates, x_candidate = x.split((2 * h.shape[-1], h.shape[-1]), dim=-1)
    z, r = torch.sigmoid(x_gates + h @ gates).chunk(2, dim=-1)
    new = torch.tanh(x_candidate + (r * h) @ candidate)
    z = z if mask is None else z * mask
    # Under autocast the products are in bfloat16, but not the state: its small changes would be rounded away.
    return torch.lerp(h, new.to(h.dtype), z.to(h.dtype))
