"""Recurrent cells: pure functions of (input, state), with everything that does not depend on the state hoisted out.

A state is a tuple of tensors, the output h first. Under autocast the products are in bfloat16, but not the state, whose
small changes would be rounded away.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from softsearch.models.layers import xavier

State = tuple[Tensor, ...]
Kind = Literal["rnn", "lstm", "gru", "input_forget"]
Reset = Literal["before", "after"]


class Cell(nn.Module):
    """A cell; its product with the input is computed for all steps at once.

    x has ``input_dim`` units and h ``hidden_dim``; the products with both hold ``blocks`` vectors of h's width.
    """

    num_states: ClassVar[int] = 1  # tensors in a state
    recurrent_weight: nn.Parameter  # U of all blocks, transposed; the GRU has it in two parts

    def __init__(self, input_dim: int, hidden_dim: int, *, blocks: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.input_projection = xavier(nn.Linear(input_dim, blocks * hidden_dim), blocks)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """Returns the next state.

        Args:
            x: :attr:`input_projection` of the input, ``[..., batch, blocks * hidden_dim]``.
            state: ``[..., batch, hidden_dim]`` each.
            real: ``[..., batch, 1]``, 0 where the state must stay as it is and 1 elsewhere; None: 1 everywhere.
        """
        raise NotImplementedError

    def start_from(self, h: Tensor) -> State:
        """The state before the first step with this ``h``; all else in it is zero."""
        return (h,) + (torch.zeros_like(h),) * (self.num_states - 1)

    def weights(self) -> tuple[Tensor, ...]:
        """Weights of input and state, ``[blocks * hidden_dim, ...]``, and the biases of both."""
        bias = self.input_projection.bias
        return self.input_projection.weight, self.recurrent_weight.T, bias, torch.zeros_like(bias)

    def weights_in_order(self, *blocks: int, negated: tuple[int, ...] = ()) -> list[Tensor]:
        """The :meth:`weights` with their blocks in the order of another implementation, and some of them negated."""
        split = (weight.chunk(len(blocks)) for weight in self.weights())
        return [torch.cat([-parts[i] if i in negated else parts[i] for i in blocks]) for parts in split]

    def kernel_weights(self) -> list[Tensor]:
        """The :meth:`weights` as PyTorch's kernel for a layer of these cells takes them."""
        return list(self.weights())


class ElmanCell(Cell):
    """h' = tanh(W x + U h + b) (Elman 1990)."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim, blocks=1)
        self.recurrent_weight = _recurrent(hidden_dim, 1)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """See :class:`Cell`; the state is (h,)."""
        (h,) = state
        return _where(real, (torch.tanh(x + h @ self.recurrent_weight).to(h.dtype),), state)


class LSTMCell(Cell):
    """Long short-term memory with a forget gate, no peepholes: Zaremba et al. 2014 (arXiv:1409.2329), section 3.

    i, f, o = sigmoid(W x + U h + b) each, g = tanh(W x + U h + b), c' = f * c + i * g, h' = o * tanh(c').
    The forget gate's bias starts at 1 (Jozefowicz et al. 2015).
    """

    num_states = 2

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim, blocks=4)  # i, f, o, g
        self.recurrent_weight = _recurrent(hidden_dim, 4)
        nn.init.ones_(self.input_projection.bias.data[hidden_dim : 2 * hidden_dim])

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """See :class:`Cell`; the state is (h, c)."""
        h, c = state
        gates, candidate = (x + h @ self.recurrent_weight).split((3 * self.hidden_dim, self.hidden_dim), dim=-1)
        i, f, o = torch.sigmoid(gates).to(c.dtype).chunk(3, dim=-1)
        c = f * c + i * torch.tanh(candidate)
        return _where(real, (o * torch.tanh(c), c), state)

    def kernel_weights(self) -> list[Tensor]:
        """See :class:`Cell`; PyTorch's order is i, f, g, o."""
        return self.weights_in_order(0, 1, 3, 2)


class InputForgetCell(Cell):
    """An LSTM whose output is its memory: an input and a forget gate, no output gate, nothing beside h.

    i, f = sigmoid(W x + U h + b) each, g = tanh(W x + U h + b), h' = f * h + i * g. Nothing bounds h, so that the
    forget gate's bias does not start at 1 as that of :class:`LSTMCell`.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim, blocks=3)  # i, f, g
        self.recurrent_weight = _recurrent(hidden_dim, 3)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """See :class:`Cell`; the state is (h,)."""
        (h,) = state
        gates, candidate = (x + h @ self.recurrent_weight).split((2 * self.hidden_dim, self.hidden_dim), dim=-1)
        i, f = torch.sigmoid(gates).to(h.dtype).chunk(2, dim=-1)
        return _where(real, (f * h + i * torch.tanh(candidate),), state)


class GRUCell(Cell):
    """The gated recurrent unit, in two forms.

    ``reset=before``, as Cho et al. 2014 wrote it (arXiv:1406.1078, equations 5 to 8):
    r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), h~ = tanh(W x + b + U (r * h)), h' = (1 - z) * h + z * h~
    (z weights the candidate as in Bahdanau et al. 2015, appendix A.1.1).

    ``reset=after``: h~ = tanh(W x + b + r * (U h + b_U)), so that no product waits for another. So do Sennrich et al.
    2017 (arXiv:1703.04357), PyTorch and cuDNN; their z weights the old state, the same with z's weights negated.
    """

    def __init__(self, input_dim: int, hidden_dim: int, *, reset: Reset = "before") -> None:
        super().__init__(input_dim, hidden_dim, blocks=3)  # z, r, candidate
        self.recurrent_gate_weight = _recurrent(hidden_dim, 2)  # U_z, U_r
        self.recurrent_candidate_weight = _recurrent(hidden_dim, 1)  # U
        self.reset = reset
        self.recurrent_candidate_bias = nn.Parameter(torch.zeros(hidden_dim)) if reset == "after" else None  # b_U

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """See :class:`Cell`; the state is (h,)."""
        gates, candidate = self.recurrent_gate_weight, self.recurrent_candidate_weight
        return (gru(x, state[0], gates, candidate, self.recurrent_candidate_bias, real),)

    def weights(self) -> tuple[Tensor, ...]:
        """See :class:`Cell`; the bias of the state is b_U."""
        weight, bias = self.input_projection.weight, self.input_projection.bias
        recurrent = torch.cat((self.recurrent_gate_weight.T, self.recurrent_candidate_weight.T))
        inside = self.recurrent_candidate_bias
        if inside is None:
            return weight, recurrent, bias, torch.zeros_like(bias)
        return weight, recurrent, bias, torch.cat((inside.new_zeros(2 * self.hidden_dim), inside))

    def kernel_weights(self) -> list[Tensor]:
        """See :class:`Cell`, with ``reset=after``; PyTorch's order is r, z, candidate, and its z weights h."""
        return self.weights_in_order(1, 0, 2, negated=(0,))


def gru(
    x: Tensor, h: Tensor, gates: Tensor, candidate: Tensor, bias: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """One step of :class:`GRUCell`, also for several cells stacked on the leading axes.

    ``x`` is W x + b for z, r and the candidate, ``[..., batch, 3 * hidden]``; ``h`` ``[..., batch, hidden]``; ``gates``
    U_z and U_r, ``[..., hidden, 2 * hidden]``; ``candidate`` U, ``[..., hidden, hidden]``; ``bias`` b_U of
    ``reset=after``, and whatever else the reset gate multiplies; ``mask`` ``[..., batch, 1]``, 0 where h must stay.
    """
    x_gates, x_candidate = x.split((2 * h.shape[-1], h.shape[-1]), dim=-1)
    z, r = torch.sigmoid(x_gates + h @ gates).chunk(2, dim=-1)
    product = (r * h) @ candidate if bias is None else r * (h @ candidate + bias)
    new = torch.tanh(x_candidate + product)
    z = z if mask is None else z * mask
    return torch.lerp(h, new.to(h.dtype), z.to(h.dtype))


def make_cell(kind: Kind, input_dim: int, hidden_dim: int, *, reset: Reset = "before") -> Cell:
    """A cell by its name; ``reset`` is the GRU's."""
    if kind == "gru":
        return GRUCell(input_dim, hidden_dim, reset=reset)
    return {"rnn": ElmanCell, "lstm": LSTMCell, "input_forget": InputForgetCell}[kind](input_dim, hidden_dim)


def _where(real: Tensor | None, after: State, before: State) -> State:
    """``after`` where ``real`` is 1, ``before`` where it is 0."""
    if real is None:
        return after
    return tuple(torch.where(real > 0, new, old) for new, old in zip(after, before, strict=True))


def _recurrent(hidden_dim: int, blocks: int) -> nn.Parameter:
    """Orthogonal matrices side by side, so that h @ them is all products with h."""
    return nn.Parameter(torch.cat([nn.init.orthogonal_(torch.empty(hidden_dim, hidden_dim)) for _ in range(blocks)], 1))
