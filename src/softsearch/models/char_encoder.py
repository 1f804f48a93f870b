"""An encoder of characters (Lee, Cho & Hofmann 2017, arXiv:1610.03017, section 4)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.cells import GRUCell, Reset
from softsearch.models.interface import Encoder, EncoderDescription, EncoderOutput, LayerShape
from softsearch.models.layers import Dropout, xavier
from softsearch.models.recurrence import Recurrence
from softsearch.ranges import Depth, Rate, Size

_CARRY = -2.0  # first bias of the gates: a layer passes on most of what it reads, as in the authors' code


class CharacterEncoder(Encoder):
    """Convolutions of several widths, max-pooling, highway layers and a bidirectional GRU (section 4.1 and figure 1).

    X = the embeddings; for each width w, Y_w = relu(b + K_w * X) of the same length: token t reads tokens t - w // 2 to
    t + (w - 1) // 2, zeros outside the sentence; Y = [Y_1; Y_2; ...]. A segment is the maximum of each row of Y over
    ``stride`` tokens; the last segment may have fewer. Highway layers (Srivastava et al. 2015) transform the segments:
    y' = g * relu(W_1 y + b_1) + (1 - g) * y, g = sigmoid(W_2 y + b_2). The GRU's states are the annotations, one for
    each segment.

    ``filters`` are the numbers of rows of Y_1, Y_2, ...; each direction of the GRU has ``hidden_dim`` units; the
    paper's form is ``reset=after``. Dropout applies to the embeddings and to the annotations.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        filters: list[Size],
        stride: Size,
        highway_layers: Depth,
        hidden_dim: Size,
        reset: Reset = "after",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        self.stride: int = stride
        layer = LayerShape(hidden_dim, 2)
        self.description = EncoderDescription(layer.joined_dim, (layer,), tokens_per_position=stride)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding.embedding_dim, rows, width) for width, rows in enumerate(filters, start=1)
        )
        self.highway = nn.Sequential(*(_Highway(sum(filters)) for _ in range(highway_layers)))
        self.recurrence = Recurrence(partial(GRUCell, reset=reset), sum(filters), hidden_dim, bidirectional=True)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes the characters; each state stands for ``stride`` of them."""
        real = src_mask[:, None]
        x = self.dropout(self.embedding(src_tokens)).transpose(1, 2) * real  # [batch, embedding_dim, src_len]
        rows = [
            convolution(functional.pad(x, (width // 2, (width - 1) // 2)))
            for width, convolution in enumerate(self.convolutions, start=1)
        ]
        y = torch.relu(torch.cat(rows, dim=1)) * real  # no value is below 0, so zeros change no maximum
        y = functional.pad(y, (0, self.stride - 1))
        # Not max_pool1d: the exporter would fix the number of tokens.
        y = functional.max_pool2d(y, (1, self.stride)).transpose(1, 2).contiguous()
        segments = (src_mask.sum(1, keepdim=True) + self.stride - 1) // self.stride
        mask = torch.arange(y.shape[1], device=y.device) < segments
        states, final = self.recurrence(self.highway(y), mask)
        return EncoderOutput(self.dropout(states), mask, (final,))


class _Highway(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.projection = xavier(nn.Linear(dim, dim))
        self.gate = xavier(nn.Linear(dim, dim))
        nn.init.constant_(self.gate.bias, _CARRY)

    def forward(self, y: Tensor) -> Tensor:
        return y + torch.sigmoid(self.gate(y)) * (torch.relu(self.projection(y)) - y)
