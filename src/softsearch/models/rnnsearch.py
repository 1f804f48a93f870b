"""The decoder of RNNsearch (Bahdanau, Cho & Bengio 2015, arXiv:1409.0473), and what other decoders share with it."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention, AttentionKind
from softsearch.models.cells import Cell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import Projections, maxout, xavier
from softsearch.ranges import Rate, Size

Look = Callable[[Tensor], tuple[Tensor, Tensor]]  # attends from [rows, hidden_dim]: the context and the alignments


class AttentionalDecoder(Decoder):
    """A recurrent decoder with additive attention; subclasses define its parts, start and step.

    Its state s is that of one cell. Of an LSTM, s is h; its c starts from zeros. The cache holds the state, and behind
    it the alignments of the step before if the attention reads them.
    """

    initial_state_projection: nn.Linear
    attention: AdditiveAttention
    cell: Cell  # reads the embeddings
    readout_projections: Projections  # of embedding, state and context
    readout_activation: Callable[[Tensor], Tensor]

    def source_attention(self) -> list[nn.Module]:
        """See :class:`Decoder`."""
        return [self.attention]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """s_0, and the attention's product with the annotations once for all steps."""
        project = self.initial_state_projection
        s = torch.tanh(project(self._start_from(encoded))).to(project.weight.dtype)
        start = self.cell.start_from(s) + self.attention.start(encoded.mask)
        return DecoderState.initial(encoded, start, self.attention.project(encoded.states))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`: the loop holds only what needs the state before; all else is done for all steps."""
        embedded = self._embed(tgt_tokens, state)
        cache, read, contexts = state.cache, [], []
        for cell_input in self._inputs(embedded).unbind(1):
            state_read, context, _, cache = self._advance(cell_input, cache, state.memory)
            read.append(state_read)
            contexts.append(context)
        return self._readout(embedded, torch.stack(read, dim=1), torch.stack(contexts, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        embedded = self._embed(tokens, state)
        read, context, alignments, cache = self._advance(self._inputs(embedded), state.cache, state.memory)
        logits = self.output_projection(self._readout(embedded, read, context))
        return StepOutput(logits, alignments, state.next(cache))

    def _inputs(self, embedded: Tensor) -> Tensor:
        """What depends on the embeddings alone, computed for all steps at once: the ``cell_input`` of each step."""
        return self.cell.input_projection(embedded)

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        """What s_0 is computed from, ``[batch, dim]``."""
        raise NotImplementedError

    def _embed(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """E y, of all steps ``[batch, tgt_len, embedding_dim]`` or of one ``[rows, embedding_dim]``."""
        embedded = self.dropout(self.embedding(tokens)).transpose(0, -2)  # time first, if there is more than one step
        return self.cell.drop_input(embedded, state.cache).transpose(0, -2)

    def _advance(
        self, cell_input: Tensor, cache: tuple[Tensor, ...], memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """One step: the state that :meth:`_readout` reads, the context, the alignments and the next cache."""
        end = len(cache) - self.attention.reads_alignments  # of the cell's state
        look = partial(self.attention, memory=memory, before=cache[end:])
        read, context, alignments, s = self._update(cell_input, cache[:end], look)
        fed = (alignments.to(s[0].dtype),) if self.attention.reads_alignments else ()
        return read, context, alignments, s + fed

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        """One step: the state that :meth:`_readout` reads, the context, the alignments and the next state."""
        raise NotImplementedError

    def _readout(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        """t, the features that the output layer reads."""
        pre = self.readout_projections(embedding=embedded, state=s, context=context)
        return self.dropout(self.readout_activation(pre))


class LookFirstDecoder(AttentionalDecoder):
    """An :class:`AttentionalDecoder` that starts from <-h_1 and attends from s_{i-1}; subclasses define the readout.

    s_0 = tanh(W_s <-h_1); c_i by additive attention from s_{i-1}; s_i = cell(s_{i-1}; W E y_{i-1} + C c_i).
    <-h_1 is the final state of the encoder's last layer, of its only direction if it is not bidirectional.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        attention_dim: Size,
        readout_dim: Size,
        output: tuple[Size, str],  # width of t, and the option that sets it
        attention: AttentionKind,
        location_filters: Size,
        location_half_width: Size,
        dropout: Rate,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim = embeddings.dim, encoder.output_dim
        self.initial_state_projection = nn.Linear(encoder.top_layer().dim, hidden_dim)
        self.attention = AdditiveAttention(
            hidden_dim,
            memory_dim,
            attention_dim,
            kind=attention,
            location_filters=location_filters,
            location_half_width=location_half_width,
        )
        self.cell = cell(dim, hidden_dim)
        width = self.cell.input_projection.out_features
        self.cell_context_projection = nn.Linear(memory_dim, width, bias=False)  # C
        self.readout_projections = Projections(readout_dim, embedding=dim, state=hidden_dim, context=memory_dim)
        self.output_projection = embeddings.make_output(*output)
        for layer in (self.initial_state_projection, *self.readout_projections.layers()):
            xavier(layer)
        xavier(self.cell_context_projection, blocks=width // hidden_dim)

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        forward, backward = encoded.final[-1]
        return (forward if backward is None else backward)[0]

    def _next(self, cell_input: Tensor, s: State, context: Tensor) -> State:
        """s_i."""
        return self.cell(cell_input + self.cell_context_projection(context), s)


class RNNsearchDecoder(LookFirstDecoder):
    """The attentional decoder of appendix A.2.2: Look, Generate, Update.

    s_0 = tanh(W_s <-h_1); for each i: c_i by additive attention from s_{i-1};
    t_i = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i), p(y_i) = softmax(W_o t_i);
    s_i = GRU(s_{i-1}; W E y_{i-1} + C c_i), the GRU of Cho et al. 2014, or another ``cell``.

    s has ``hidden_dim`` units, t ``maxout_dim``. The paper's GRU has ``reset=before``. ``attention`` and the
    ``location_`` options are those of :class:`AdditiveAttention`. Dropout is on the embeddings and on t.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        attention_dim: Size,
        maxout_dim: Size,
        attention: AttentionKind = "content",
        location_filters: Size = 10,
        location_half_width: Size = 5,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(
            embeddings=embeddings,
            encoder=encoder,
            cell=cell,
            hidden_dim=hidden_dim,
            attention_dim=attention_dim,
            readout_dim=2 * maxout_dim,
            output=(maxout_dim, "maxout_dim"),
            attention=attention,
            location_filters=location_filters,
            location_half_width=location_half_width,
            dropout=dropout,
        )
        self.readout_activation = maxout

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        context, alignments = look(s[0])
        return s[0], context, alignments, self._next(cell_input, s, context)
