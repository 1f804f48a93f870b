"""ONNX operators RNN, LSTM and GRU for a recurrent layer: exporting a loop over time would fix the number of tokens.

The GRU's ``linear_before_reset`` is 0 where the reset gate acts before the product and 1 where it acts after. ONNX lets
z weight the old state where our cells let it weight the candidate, hence its negated weights: sigmoid(-a) = 1 -
sigmoid(a).

A cell with input and forget gates alone is an LSTM whose output gate is 1, and whose output is the memory itself
instead of its tanh: the operator's third activation, which is the identity as ``Affine`` with alpha 1 and beta 0.
"""

from typing import Any

import torch
from torch import Tensor, nn

from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell
from softsearch.models.interface import FinalState
from softsearch.models.recurrence import Recurrence, RecurrenceOutput

OPSET = 20
_OPERATORS = {
    ElmanCell: "ai.onnx::RNN",
    LSTMCell: "ai.onnx::LSTM",
    GRUCell: "ai.onnx::GRU",
    InputForgetCell: "ai.onnx::LSTM",
}
_OPEN = 100.0  # whose sigmoid is 1 in single precision


class OnnxRecurrence(nn.Module):
    """A :class:`Recurrence` from zero states whose loop over time is one operator; it can only be exported."""

    def __init__(self, original: Recurrence) -> None:
        super().__init__()
        cell, cells = original.forward_cell, original.cells
        self.operator, self.num_states = _OPERATORS[type(cell)], cell.num_states
        self.attributes: dict[str, Any] = {
            "hidden_size": cell.hidden_dim,
            "direction": ("forward", "bidirectional")[len(cells) - 1],
        }
        if isinstance(cell, GRUCell):
            self.attributes["linear_before_reset"] = int(cell.reset == "after")
        if isinstance(cell, InputForgetCell):
            self.attributes["activations"] = ["Sigmoid", "Tanh", "Affine"] * len(cells)
            self.attributes |= {"activation_alpha": [1.0] * len(cells), "activation_beta": [0.0] * len(cells)}
        w, r, b, b_r = (torch.stack(weights).detach() for weights in zip(*map(_onnx_weights, cells), strict=True))
        self.w = nn.Buffer(w)  # [directions, blocks * hidden, input]
        self.r = nn.Buffer(r)  # [directions, blocks * hidden, hidden]
        self.b = nn.Buffer(torch.cat((b, b_r), dim=1))  # [directions, 2 * blocks * hidden]

    def forward(self, x: Tensor, mask: Tensor) -> RecurrenceOutput:
        """See :class:`Recurrence`."""
        (batch, src_len, _), (directions, _, hidden_dim) = x.shape, self.r.shape
        last = (directions, batch, hidden_dim)
        states, *final = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (x.transpose(0, 1), self.w, self.r, self.b, mask.sum(1).to(torch.int32)),
            self.attributes,
            dtypes=[x.dtype] * (1 + self.num_states),
            shapes=[(src_len, *last), *[last] * self.num_states],
            version=OPSET,
        )
        by_direction = (tuple(state[d] for state in final) for d in range(directions))
        return RecurrenceOutput(states.permute(2, 0, 1, 3).flatten(2), FinalState(*by_direction))


def _onnx_weights(cell: Cell) -> list[Tensor]:
    """Weights and biases of input and state in ONNX's order: GRU z, r, candidate; LSTM i, o, f, g."""
    if isinstance(cell, GRUCell):
        return cell.weights_in_order(0, 1, 2, negated=(0,))
    if isinstance(cell, InputForgetCell):
        opened = (0.0, 0.0, _OPEN, 0.0)  # the output gate's weights of input and state, and its biases
        split = (weight.chunk(3) for weight in cell.weights())
        return [torch.cat((i, torch.full_like(i, o), f, g)) for (i, f, g), o in zip(split, opened, strict=True)]
    return cell.weights_in_order(0, 2, 1, 3) if isinstance(cell, LSTMCell) else list(cell.weights())
