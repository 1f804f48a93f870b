"""The decoder of the RNN Encoder-Decoder, a fixed summary in every step (Cho et al. 2014, arXiv:1406.1078)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.cells import GRUCell
from softsearch.models.interface import (
    Decoder,
    DecoderState,
    EncoderOutput,
    LayerShape,
    Memory,
    StepOutput,
    top_shape,
)
from softsearch.models.layers import Dropout, Maxout
from softsearch.ranges import Rate, Size


class RNNencdecDecoder(Decoder):
    """The decoder of appendix A.1.2; its weights with a prime there have none here.

    c = tanh(V h_N), h_0 = tanh(V' c); h_t = GRU(h_{t-1}; E y_{t-1}, c), where r gates U h_{t-1} + C c together:
    h~_t = tanh(W E y_{t-1} + r * (U h_{t-1} + C c)); s_t = maxout(O_h h_t + O_y E y_{t-1} + O_c c), p(y_t) =
    softmax(G s_t). y_0 is BOS, with an embedding like any other, where the paper has zeros. With ``output_rank`` G is a
    product G_l G_r, and ``output`` holds G_l.

    Args:
        embedding: target embeddings E.
        make_output: makes the output layer G for the maxout layer's width.
        memory_dim: width of the encoder's states, of which only the last is used.
        final_shapes: of the encoder's last states; that of the last layer, its directions side by side, is h_N.
        hidden_dim: units of h and of c.
        maxout_dim: units of s.
        output_rank: rank of G; by default G is one matrix of full rank.
        dropout: on the embeddings, on c and on s.

    Raises:
        ConfigError: the encoder has no last state.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        make_output: Callable[[int, str], nn.Linear],
        memory_dim: int,
        final_shapes: tuple[LayerShape, ...],
        hidden_dim: Size,
        maxout_dim: Size,
        output_rank: Size | None = None,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        del memory_dim
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.summary = nn.Linear(top_shape(final_shapes).joined_dim, hidden_dim)
        self.start = nn.Linear(hidden_dim, hidden_dim)
        self.cell = GRUCell(embedding.embedding_dim, hidden_dim, reset="after")
        self.cell_summary = nn.Linear(hidden_dim, 3 * hidden_dim, bias=False)  # C_z, C_r, C
        self.maxout_embedding = nn.Linear(embedding.embedding_dim, 2 * maxout_dim)
        self.maxout_state = nn.Linear(hidden_dim, 2 * maxout_dim, bias=False)
        self.maxout_summary = nn.Linear(hidden_dim, 2 * maxout_dim, bias=False)
        self.maxout = Maxout()
        self.factor = nn.Identity() if output_rank is None else nn.Linear(maxout_dim, output_rank, bias=False)  # G_r
        width = (maxout_dim, "maxout_dim") if output_rank is None else (output_rank, "output_rank")
        self.output = make_output(*width)
        layers = (self.summary, self.start, self.maxout_embedding, self.maxout_state, self.maxout_summary)
        factor = list(self.factor.parameters())
        for weight in (*(layer.weight for layer in layers), *self.cell_summary.weight.data.chunk(3), *factor):
            nn.init.xavier_uniform_(weight)
        for bias in (self.summary.bias, self.start.bias, self.maxout_embedding.bias):
            nn.init.zeros_(bias)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """h_0, and the products with c once for all steps."""
        c = self.dropout(torch.tanh(self.summary(encoded.final[-1].joined().h)))
        memory = Memory(encoded.states, encoded.mask, (self.cell_summary(c), self.maxout_summary(c)))
        start = torch.tanh(self.start(c)).to(self.start.weight.dtype)
        return DecoderState(memory, (start,), encoded.mask.new_zeros(encoded.mask.shape[0], dtype=torch.int64))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`: the loop holds the GRU alone."""
        embedded = self.dropout(self.embedding(tgt_tokens))  # [batch, tgt_len, embedding_dim]
        for_cell, for_maxout = state.memory.projected
        h, states = state.cache[0], []
        for cell_input in self.cell.input(embedded).unbind(1):
            h = self._update(cell_input, h, for_cell)
            states.append(h)
        return self._readout(embedded, torch.stack(states, dim=1), for_maxout[:, None])

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        memory = state.memory
        for_cell, for_maxout = (p[:, None] for p in memory.projected)
        # A sentence's beams lie on an axis of their own, [sentences, beams, ...].
        embedded = self.dropout(self.embedding(tokens)).unflatten(0, (memory.mask.shape[0], -1))
        before = state.cache[0].unflatten(0, (memory.mask.shape[0], -1))
        h = self._update(self.cell.input(embedded), before, for_cell)
        features = self._readout(embedded, h, for_maxout).flatten(0, 1)
        return StepOutput(self.output(features), None, DecoderState(memory, (h.flatten(0, 1),), state.position + 1))

    def _update(self, cell_input: Tensor, h: Tensor, summary: Tensor) -> Tensor:
        """h_t."""
        hidden = self.cell.hidden_dim
        gates, inside = summary.split((2 * hidden, hidden), dim=-1)
        x = torch.cat((cell_input[..., : 2 * hidden] + gates, cell_input[..., 2 * hidden :]), dim=-1)
        return self.cell.reset_after(x, h, inside)

    def _readout(self, embedded: Tensor, h: Tensor, summary: Tensor) -> Tensor:
        """s_t, or G_r s_t: the features that the output layer reads."""
        s: Tensor = self.dropout(self.maxout(self.maxout_embedding(embedded) + self.maxout_state(h) + summary))
        features: Tensor = self.factor(s)
        return features
