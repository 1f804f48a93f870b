"""The decoder of RNNsearch (Bahdanau, Cho & Bengio 2015, arXiv:1409.0473), and what Nematus' decoder shares with it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention
from softsearch.models.cells import GRUCell, Reset
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import Projections, maxout, xavier
from softsearch.ranges import Rate, Size


class AttentionalGRUDecoder(Decoder):
    """A decoder whose state s is a GRU's, with additive attention; subclasses define its parts, start and step."""

    initial_state_projection: nn.Linear
    attention: AdditiveAttention
    cell: GRUCell  # reads the embeddings
    readout_projections: Projections  # of embedding, state and context
    readout_activation: Callable[[Tensor], Tensor]

    def source_attention(self) -> list[nn.Module]:
        """See :class:`Decoder`."""
        return [self.attention]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """s_0, and the attention's product with the annotations once for all steps."""
        project = self.initial_state_projection
        s = torch.tanh(project(self._start_from(encoded))).to(project.weight.dtype)
        return DecoderState.initial(encoded, (s,), self.attention.project(encoded.states))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`: the loop holds only what needs the state before; all else is done for all steps."""
        embedded = self.dropout(self.embedding(tgt_tokens))  # [batch, tgt_len, embedding_dim]
        s = state.cache[0]
        read, contexts = [], []
        for cell_input in self.cell.input_projection(embedded).unbind(1):
            state_read, context, _, s = self._advance(cell_input, s, state.memory)
            read.append(state_read)
            contexts.append(context)
        return self._readout(embedded, torch.stack(read, dim=1), torch.stack(contexts, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        embedded = self.dropout(self.embedding(tokens))
        read, context, alignments, s = self._advance(self.cell.input_projection(embedded), state.cache[0], state.memory)
        logits = self.output_projection(self._readout(embedded, read, context))
        return StepOutput(logits, alignments, state.next((s,)))

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        """What s_0 is computed from, ``[batch, dim]``."""
        raise NotImplementedError

    def _advance(self, cell_input: Tensor, s: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One step: the state that :meth:`_readout` reads, the context, the alignments and the next state."""
        raise NotImplementedError

    def _readout(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        """t, the features that the output layer reads."""
        pre = self.readout_projections(embedding=embedded, state=s, context=context)
        return self.dropout(self.readout_activation(pre))


class RNNsearchDecoder(AttentionalGRUDecoder):
    """The attentional decoder of appendix A.2.2: Look, Generate, Update.

    s_0 = tanh(W_s <-h_1); for each i: c_i by additive attention from s_{i-1};
    t_i = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i), p(y_i) = softmax(W_o t_i);
    s_i = GRU(s_{i-1}; W E y_{i-1} + C c_i), the GRU of Cho et al. 2014.
    <-h_1 is the final state of the encoder's last layer, of its only direction if it is not bidirectional.

    s has ``hidden_dim`` units, t ``maxout_dim``. The paper's GRU has ``reset=before``. Dropout is on the embeddings and
    on t.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        hidden_dim: Size,
        attention_dim: Size,
        maxout_dim: Size,
        reset: Reset = "before",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim = embeddings.dim, encoder.output_dim
        self.initial_state_projection = nn.Linear(encoder.top_layer().dim, hidden_dim)
        self.attention = AdditiveAttention(hidden_dim, memory_dim, attention_dim)
        self.cell = GRUCell(dim, hidden_dim, reset=reset)
        self.cell_context_projection = nn.Linear(memory_dim, 3 * hidden_dim, bias=False)
        self.readout_projections = Projections(2 * maxout_dim, embedding=dim, state=hidden_dim, context=memory_dim)
        self.readout_activation = maxout
        self.output_projection = embeddings.make_output(maxout_dim, "maxout_dim")
        for layer in (self.initial_state_projection, *self.readout_projections.layers()):
            xavier(layer)
        xavier(self.cell_context_projection, blocks=3)

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        forward, backward = encoded.final[-1]
        return (forward if backward is None else backward)[0]

    def _advance(self, cell_input: Tensor, s: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        context, alignments = self.attention(s, memory)
        return s, context, alignments, *self.cell(cell_input + self.cell_context_projection(context), (s,))
