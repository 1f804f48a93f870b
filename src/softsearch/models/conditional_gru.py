"""The decoder of Nematus (Sennrich et al. 2017, arXiv:1703.04357), first of dl4mt: two GRUs with attention between."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention
from softsearch.models.cells import GRUCell, Reset
from softsearch.models.interface import Decoder, DecoderState, EncoderOutput, LayerShape, Memory, StepOutput
from softsearch.models.layers import Dropout
from softsearch.ranges import Rate, Size


class ConditionalGRUDecoder(Decoder):
    """The conditional GRU of section 2: Look, Update, Generate.

    s_0 = tanh(W_init mean_i h_i); for each j: s'_j = GRU_1(E y_{j-1}, s_{j-1}), c_j by additive attention from s'_j,
    s_j = GRU_2(c_j, s'_j); t_j = tanh(W_t1 s_j + W_t2 E y_{j-1} + W_t3 c_j), p(y_j) = softmax(W_o t_j).
    There z weights the old state: :class:`GRUCell` with z's weights negated.

    Args:
        embedding: target embeddings E.
        make_output: makes the output layer W_o for the width of t.
        memory_dim: width of the annotations.
        final_shapes: not used: this decoder starts from the mean of the annotations.
        hidden_dim: units of s' and s.
        attention_dim: units of the attention's hidden layer.
        output_dim: units of t.
        reset: the GRUs' form; ``after`` is the paper's.
        dropout: on the embeddings and on t.
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
        output_dim: Size,
        reset: Reset = "after",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        del final_shapes
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.start = nn.Linear(memory_dim, hidden_dim)
        self.read = GRUCell(embedding.embedding_dim, hidden_dim, reset=reset)
        self.attention = AdditiveAttention(hidden_dim, memory_dim, attention_dim)
        self.update = GRUCell(memory_dim, hidden_dim, reset=reset)
        self.readout_state = nn.Linear(hidden_dim, output_dim)
        self.readout_embedding = nn.Linear(embedding.embedding_dim, output_dim, bias=False)
        self.readout_context = nn.Linear(memory_dim, output_dim, bias=False)
        self.output = make_output(output_dim, "output_dim")
        for layer in (self.start, self.readout_state, self.readout_embedding, self.readout_context):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.start.bias)
        nn.init.zeros_(self.readout_state.bias)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """s_0 from the mean over the real tokens, and the attention's product with them once for all steps."""
        memory = Memory(encoded.states, encoded.mask, (self.attention.project(encoded.states),))
        real = encoded.mask[..., None].to(encoded.states.dtype)
        start = torch.tanh(self.start((encoded.states * real).sum(1) / real.sum(1))).to(self.start.weight.dtype)
        return DecoderState(memory, (start,), encoded.mask.new_zeros(encoded.mask.shape[0], dtype=torch.int64))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`: the loop holds only what needs s_{j-1}; all else is done for all steps at once."""
        embedded = self.dropout(self.embedding(tgt_tokens))  # [batch, tgt_len, embedding_dim]
        s = state.cache[0]
        states, contexts = [], []
        for read_input in self.read.input(embedded).unbind(1):
            s, context, _ = self._look_and_update(read_input, s, state.memory)
            states.append(s)
            contexts.append(context)
        return self._readout(embedded, torch.stack(states, dim=1), torch.stack(contexts, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        embedded = self.dropout(self.embedding(tokens))
        s, context, alignments = self._look_and_update(self.read.input(embedded), state.cache[0], state.memory)
        logits = self.output(self._readout(embedded, s, context))
        return StepOutput(logits, alignments, DecoderState(state.memory, (s,), state.position + 1))

    def _look_and_update(self, read_input: Tensor, s: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """One step of the recurrence: s_j, the context c_j and the alignments."""
        (s,) = self.read(read_input, (s,))
        context, alignments = self.attention(s, memory.states, memory.projected[0], memory.mask)
        (s,) = self.update(self.update.input(context), (s,))
        return s, context, alignments

    def _readout(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        """t_j, the features that the output layer reads."""
        pre = self.readout_state(s) + self.readout_embedding(embedded) + self.readout_context(context)
        features: Tensor = self.dropout(torch.tanh(pre))
        return features
