"""ONNX's RNN, LSTM and GRU operators for a recurrent layer: exporting a loop over time would fix the number of tokens.

The GRU's ``linear_before_reset`` is 0 where the reset gate acts before the product and 1 where it acts after. ONNX lets
z weight the old state where our cells let it weight the candidate, hence its negated weights: sigmoid(-a) = 1 -
sigmoid(a).
"""

from typing import Any

import torch
from onnxscript import opset20 as op
from torch import Tensor, nn

from softsearch.models.cells import Cell, GRUCell, LSTMCell
from softsearch.models.interface import FinalState
from softsearch.models.recurrence import Recurrence, RecurrenceOutput


class OnnxRecurrence(nn.Module):
    """A :class:`Recurrence` from zero states whose loop over time is one operator."""

    def __init__(self, original: Recurrence) -> None:
        super().__init__()
        cell = original.forward_cell
        self.hidden_dim, self.num_states = cell.hidden_dim, cell.num_states
        self.kind, self.directions = type(cell).__name__, len(original.cells)
        self.reset_after = isinstance(cell, GRUCell) and cell.reset == "after"
        w, r, b, b_r = (
            torch.stack(weights).detach() for weights in zip(*map(_onnx_weights, original.cells), strict=True)
        )
        self.register_buffer("w", w)  # [directions, blocks * hidden, input]
        self.register_buffer("r", r)  # [directions, blocks * hidden, hidden]
        self.register_buffer("b", torch.cat((b, b_r), dim=1))  # [directions, 2 * blocks * hidden]

    def forward(self, x: Tensor, mask: Tensor) -> RecurrenceOutput:
        """See :class:`Recurrence`."""
        lengths = mask.sum(1).to(torch.int32)
        states, h, c = torch.ops.softsearch.recurrence(
            x.transpose(0, 1), self.w, self.r, self.b, lengths, self.hidden_dim, self.kind, self.reset_after
        )
        final = FinalState(*(tuple(s[d] for s in (h, c)[: self.num_states]) for d in range(self.directions)))
        return RecurrenceOutput(states.permute(2, 0, 1, 3).flatten(2), final)


def _onnx_weights(cell: Cell) -> list[Tensor]:
    """Weights and biases of input and state in ONNX's order: GRU z, r, candidate; LSTM i, o, f, g."""
    if isinstance(cell, GRUCell):
        return cell.weights_in_order(0, 1, 2, negated=(0,))
    return cell.weights_in_order(0, 2, 1, 3) if isinstance(cell, LSTMCell) else list(cell.weights())


@torch.library.custom_op("softsearch::recurrence", mutates_args=())
def recurrence(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor, lengths: Tensor, hidden_dim: int, kind: str, reset_after: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Exists to be exported.

    ``x`` ``[src_len, batch, input]`` -> states ``[src_len, directions, batch, hidden]``, last h and last c
    ``[directions, batch, hidden]``.
    """
    raise NotImplementedError("this operator only stands for ONNX's while a model is exported")


@recurrence.register_fake
def _(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor, lengths: Tensor, hidden_dim: int, kind: str, reset_after: bool
) -> tuple[Tensor, Tensor, Tensor]:
    src_len, batch, _ = x.shape
    last = (w.shape[0], batch, hidden_dim)
    return x.new_empty(src_len, w.shape[0], batch, hidden_dim), x.new_empty(last), x.new_empty(last)


def _onnx_operator(x: Any, w: Any, r: Any, b: Any, lengths: Any, hidden_dim: int, kind: str, reset_after: bool) -> Any:
    options: Any = {"hidden_size": hidden_dim, "direction": "bidirectional" if w.shape[0] == 2 else "forward"}
    if kind == "LSTMCell":
        return op.LSTM(x, w, r, b, lengths, **options)
    if kind == "GRUCell":
        states, last = op.GRU(x, w, r, b, lengths, **options, linear_before_reset=int(reset_after))
    else:
        states, last = op.RNN(x, w, r, b, lengths, **options)
    return states, last, last


ONNX_FUNCTIONS: dict[Any, Any] = {torch.ops.softsearch.recurrence.default: _onnx_operator}
