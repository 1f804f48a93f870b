"""The decoder of RNNsearch (Bahdanau, Cho & Bengio 2015, arXiv:1409.0473)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention
from softsearch.models.cells import GRUCell, Reset
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


class RNNsearchDecoder(Decoder):
    """The attentional decoder of appendix A.2.2: Look, Generate, Update.

    s_0 = tanh(W_s <-h_1); for each i: c_i by additive attention from s_{i-1};
    t_i = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i), p(y_i) = softmax(W_o t_i);
    s_i = GRU(s_{i-1}; W E y_{i-1} + C c_i), the GRU of Cho et al. 2014.

    Args:
        embedding: target embeddings E.
        make_output: makes the output layer W_o for the maxout layer's width.
        memory_dim: width of the annotations.
        final_shapes: of the encoder's last states; that of the last layer's backward GRU (of the only one, where the
            encoder reads in one direction) starts the decoder.
        hidden_dim: units of s.
        attention_dim: units of the attention's hidden layer.
        maxout_dim: units of t.
        reset: the GRU's form; ``before`` is the paper's.
        dropout: on the embeddings and on t.

    Raises:
        ConfigError: the encoder has no last state.
    """

    has_attention = True

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        make_output: Callable[[int, str], nn.Linear],
        memory_dim: int,
        final_shapes: tuple[LayerShape, ...],
        hidden_dim: Size,
        attention_dim: Size,
        maxout_dim: Size,
        reset: Reset = "before",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.start = nn.Linear(top_shape(final_shapes).dim, hidden_dim)
        self.attention = AdditiveAttention(hidden_dim, memory_dim, attention_dim)
        self.cell = GRUCell(embedding.embedding_dim, hidden_dim, reset=reset)
        self.cell_context = nn.Linear(memory_dim, 3 * hidden_dim, bias=False)
        self.maxout_embedding = nn.Linear(embedding.embedding_dim, 2 * maxout_dim)
        self.maxout_state = nn.Linear(hidden_dim, 2 * maxout_dim, bias=False)
        self.maxout_context = nn.Linear(memory_dim, 2 * maxout_dim, bias=False)
        self.maxout = Maxout()
        self.output = make_output(maxout_dim, "maxout_dim")
        layers = (self.start, self.maxout_embedding, self.maxout_state, self.maxout_context)
        for weight in (*(layer.weight for layer in layers), *self.cell_context.weight.data.chunk(3)):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.start.bias)
        nn.init.zeros_(self.maxout_embedding.bias)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """s_0 from the backward encoder's state at the first word, and U_a h_j once for all steps."""
        memory = Memory(encoded.states, encoded.mask, (self.attention.project(encoded.states),))
        forward, backward = encoded.final[-1]
        last = forward.h if backward is None else backward.h
        start = torch.tanh(self.start(last)).to(self.start.weight.dtype)
        return DecoderState(memory, (start,), encoded.mask.new_zeros(encoded.mask.shape[0], dtype=torch.int64))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`: the loop holds only what needs s_{i-1}; all else is done for all steps at once."""
        embedded = self.dropout(self.embedding(tgt_tokens))  # [batch, tgt_len, embedding_dim]
        s = state.cache[0]
        before, contexts = [], []
        for cell_input in self.cell.input(embedded).unbind(1):
            context, _, after = self._look_and_update(cell_input, s, state.memory)
            before.append(s)
            contexts.append(context)
            s = after
        return self._readout(embedded, torch.stack(before, dim=1), torch.stack(contexts, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        embedded = self.dropout(self.embedding(tokens))
        s = state.cache[0]
        context, alignments, after = self._look_and_update(self.cell.input(embedded), s, state.memory)
        logits = self.output(self._readout(embedded, s, context))
        return StepOutput(logits, alignments, DecoderState(state.memory, (after,), state.position + 1))

    def _look_and_update(self, cell_input: Tensor, s: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """One step of the recurrence: the context c_i, the alignments and s_i."""
        context, alignments = self.attention(s, memory.states, memory.projected[0], memory.mask)
        return context, alignments, *self.cell(cell_input + self.cell_context(context), (s,))

    def _readout(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        """t_i, the features that the output layer reads."""
        pre = self.maxout_embedding(embedded) + self.maxout_state(s) + self.maxout_context(context)
        features: Tensor = self.dropout(self.maxout(pre))
        return features
