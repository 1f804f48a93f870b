"""Recurrent layers in an exported graph, where a Python loop would fix the number of tokens.

Our plain cells become ONNX's operators RNN, LSTM and GRU. Other cells, and those with norms or further transitions,
become a ``Scan`` of the cell's step, for which the runtime allows at most one iteration per token
(``bound_scans``).

The GRU's ``linear_before_reset`` is 0 if the reset gate acts before the product and 1 if it acts after. In ONNX z
weights the old state, but in our cells it weights the candidate, so its weights are negated: sigmoid(-a) = 1 -
sigmoid(a).

A cell with only input and forget gates is an LSTM whose output gate is 1, and whose output is the memory itself instead
of its tanh: the operator's third activation is the identity, ``Affine`` with alpha 1 and beta 0.
"""

from typing import Any

import onnx
import torch
from onnx import helper
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell, State
from softsearch.models.interface import FinalState
from softsearch.models.recurrence import Loop, Recurrence, RecurrenceOutput

OPSET = 23
_OPERATORS = {
    ElmanCell: "ai.onnx::RNN",
    LSTMCell: "ai.onnx::LSTM",
    GRUCell: "ai.onnx::GRU",
    InputForgetCell: "ai.onnx::LSTM",
}
_OPEN = 100.0  # its sigmoid is 1 in single precision


def exportable_loop(layer: Recurrence) -> nn.Module:
    """Returns an exportable form of the layer, from zero states; the layer itself must not be used afterwards."""
    has_operator = type(layer.forward_cell) in _OPERATORS and layer.forward_cell.is_plain
    return OnnxRecurrence(layer) if has_operator else _ScannedRecurrence(layer)


def bound_scans(graph: onnx.GraphProto, tokens: str) -> None:
    """Makes every ``Scan`` also scan the input of tokens ``[sentences, src_len]``, without using it.

    ONNX Runtime refuses scans of unequal lengths, so ``softsearch.runtime.graph_check`` can tell their length.
    """
    for node in (node for node in graph.node if node.op_type == "Scan"):
        attributes = {attribute.name: attribute for attribute in node.attribute}
        count = attributes["num_scan_inputs"].i
        attributes["num_scan_inputs"].i = count + 1
        attributes["scan_input_directions"].ints.append(0)
        node.attribute.append(helper.make_attribute("scan_input_axes", [0] * count + [1]))
        body = attributes["body"].g
        body.input.append(helper.make_tensor_value_info(f"{body.name}_token", onnx.TensorProto.INT64, None))
        node.input.append(tokens)


class _ScanLoop(Loop):
    def forward(self, inputs: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:

        def step(before: State, now: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
            after = self.cell.advance(now[0], before, now[1])
            return after, after[0].clone()  # two outputs must not share memory

        last, states = scan(step, state, (inputs, real))
        return states, last


class _ScannedRecurrence(Recurrence):
    loop = _ScanLoop

    def __init__(self, original: Recurrence) -> None:
        nn.Module.__init__(self)
        self.forward_cell, self.backward_cell = original.forward_cell, original.backward_cell
        self.names, weights = zip(*original.loop_weights().items(), strict=True)
        self.weights = nn.ParameterList(nn.Parameter(w.detach(), requires_grad=False) for w in weights)

    def loop_weights(self) -> dict[str, Tensor]:
        """Stacks the weights once, so that the graph need not."""
        return dict(zip(self.names, self.weights, strict=True))


class OnnxRecurrence(nn.Module):
    """A ``Recurrence`` from zero states whose loop over time is one operator; only for export."""

    def __init__(self, original: Recurrence) -> None:
        super().__init__()
        cell, cells = original.forward_cell, original.cells
        self.forward_cell = cell  # for a decoder's first state
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

    def forward(self, x: Tensor, mask: Tensor, initial: None = None) -> RecurrenceOutput:
        """Runs the layer like ``Recurrence.forward``."""
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
    """Returns weights and biases of input and state in ONNX's order: GRU z, r, candidate; LSTM i, o, f, g."""
    if isinstance(cell, GRUCell):
        return cell.weights_in_order(0, 1, 2, negated=(0,))
    if isinstance(cell, InputForgetCell):
        opened = (0.0, 0.0, _OPEN, 0.0)  # the output gate's weights of input and state, and its biases
        split = (weight.chunk(3) for weight in cell.weights())
        return [torch.cat((i, torch.full_like(i, o), f, g)) for (i, f, g), o in zip(split, opened, strict=True)]
    return cell.weights_in_order(0, 2, 1, 3) if isinstance(cell, LSTMCell) else list(cell.weights())
