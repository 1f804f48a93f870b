"""The decoder of Nematus (Sennrich et al. 2017, arXiv:1703.04357), first of dl4mt: two GRUs with attention between."""

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention, AttentionKind
from softsearch.models.cells import GRUCell, Reset, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription, EncoderOutput
from softsearch.models.layers import Projections, xavier
from softsearch.models.rnnsearch import AttentionalDecoder, Look
from softsearch.ranges import Rate, Size


class ConditionalGRUDecoder(AttentionalDecoder):
    """The conditional GRU of section 2: Look, Update, Generate.

    s_0 = tanh(W_init mean_i h_i); for each j: s'_j = GRU_1(E y_{j-1}, s_{j-1}), c_j by additive attention from s'_j,
    s_j = GRU_2(c_j, s'_j); t_j = tanh(W_t1 s_j + W_t2 E y_{j-1} + W_t3 c_j), p(y_j) = softmax(W_o t_j).
    There z weights the old state: :class:`GRUCell` with z's weights negated.

    s' and s have ``hidden_dim`` units, t ``output_dim``. The paper's GRUs have ``reset=after``. ``attention`` and the
    ``location_`` options are those of :class:`AdditiveAttention`. Dropout is on the embeddings and on t.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        hidden_dim: Size,
        attention_dim: Size,
        output_dim: Size,
        reset: Reset = "after",
        attention: AttentionKind = "content",
        location_filters: Size = 10,
        location_half_width: Size = 5,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim = embeddings.dim, encoder.output_dim
        self.initial_state_projection = nn.Linear(memory_dim, hidden_dim)
        self.cell = GRUCell(dim, hidden_dim, reset=reset)  # GRU_1
        self.attention = AdditiveAttention(
            hidden_dim,
            memory_dim,
            attention_dim,
            kind=attention,
            location_filters=location_filters,
            location_half_width=location_half_width,
        )
        self.context_cell = GRUCell(memory_dim, hidden_dim, reset=reset)  # GRU_2
        self.readout_projections = Projections(output_dim, state=hidden_dim, embedding=dim, context=memory_dim)
        self.readout_activation = torch.tanh
        self.output_projection = embeddings.make_output(output_dim, "output_dim")
        for layer in (self.initial_state_projection, *self.readout_projections.layers()):
            xavier(layer)

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        real = encoded.mask[..., None].to(encoded.states.dtype)
        return (encoded.states * real).sum(1) / real.sum(1)

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        s = self.cell(cell_input, s)
        context, alignments = look(s[0])
        s = self.context_cell(self.context_cell.input_projection(context), s)
        return s[0], context, alignments, s
