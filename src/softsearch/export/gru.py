"""ONNX's GRU operator for a bidirectional GRU: exporting the Python loop would fix the number of tokens.

ONNX (``linear_before_reset=0``) lets z weight the old state where Cho et al. let it weight the candidate, hence the
negated weights of z: sigmoid(-a) = 1 - sigmoid(a).
"""

from typing import Any

import torch
from onnxscript import opset20 as op
from torch import Tensor, nn

from softsearch.models.cells import GRUCell
from softsearch.models.recurrent import BidirectionalGRU


class OnnxGRU(nn.Module):
    """A :class:`BidirectionalGRU` whose loop over time is one operator."""

    def __init__(self, original: BidirectionalGRU) -> None:
        super().__init__()
        self.hidden_dim = original.forwards.hidden_dim
        cells = (original.forwards, original.backwards)
        inputs, recurrents, biases = zip(*map(_onnx_weights, cells), strict=True)
        self.register_buffer("w", torch.stack(inputs))  # [2, 3 * hidden, input]
        self.register_buffer("r", torch.stack(recurrents))  # [2, 3 * hidden, hidden]
        self.register_buffer("b", torch.stack(biases))  # [2, 6 * hidden]

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See :class:`BidirectionalGRU`."""
        lengths = mask.sum(1).to(torch.int32)
        states, last = torch.ops.softsearch.bidirectional_gru(
            x.transpose(0, 1), self.w, self.r, self.b, lengths, self.hidden_dim
        )
        return states.permute(2, 0, 1, 3).flatten(2), last[0], last[1]


def _onnx_weights(cell: GRUCell) -> tuple[Tensor, Tensor, Tensor]:
    """Weights in ONNX's layout, rows z, r, candidate, with z negated."""
    hidden = cell.hidden_dim
    sign = torch.ones(3 * hidden)
    sign[:hidden] = -1
    recurrent = torch.cat((cell.gates.T, cell.candidate.T))
    bias = torch.cat((cell.input.bias * sign, torch.zeros(3 * hidden)))
    return (cell.input.weight * sign[:, None]).detach(), (recurrent * sign[:, None]).detach(), bias.detach()


@torch.library.custom_op("softsearch::bidirectional_gru", mutates_args=())
def bidirectional_gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor, lengths: Tensor, hidden_dim: int
) -> tuple[Tensor, Tensor]:
    """Exists to be exported.

    ``x`` ``[src_len, batch, input]`` -> states ``[src_len, 2, batch, hidden]``, last ``[2, batch, hidden]``.
    """
    raise NotImplementedError("this operator only stands for ONNX's GRU while a model is exported")


@bidirectional_gru.register_fake
def _(x: Tensor, w: Tensor, r: Tensor, b: Tensor, lengths: Tensor, hidden_dim: int) -> tuple[Tensor, Tensor]:
    src_len, batch, _ = x.shape
    return x.new_empty(src_len, 2, batch, hidden_dim), x.new_empty(2, batch, hidden_dim)


def _onnx_gru(x: Any, w: Any, r: Any, b: Any, lengths: Any, hidden_dim: int) -> Any:
    return op.GRU(x, w, r, b, lengths, hidden_size=hidden_dim, direction="bidirectional", linear_before_reset=0)


ONNX_FUNCTIONS: dict[Any, Any] = {torch.ops.softsearch.bidirectional_gru.default: _onnx_gru}
