"""The decoder of Nematus (Sennrich et al. 2017, arXiv:1703.04357), first of dl4mt: two GRUs with attention between."""

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention, AttentionKind
from softsearch.models.cells import Cell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import DecoderState, EncoderDescription, EncoderOutput
from softsearch.models.layers import NormedLinear, Projections, xavier
from softsearch.models.rnnsearch import AttentionalDecoder, Look
from softsearch.ranges import Range, Rate, Size


class ConditionalGRUDecoder(AttentionalDecoder):
    """The conditional GRU of section 2: Look, Update, Generate.

    s_0 = tanh(W_init mean_i h_i); for each j: s'_j = GRU_1(E y_{j-1}, s_{j-1}), c_j by additive attention from s'_j,
    s_j = GRU_2(c_j, s'_j); t_j = tanh(W_t1 s_j + W_t2 E y_{j-1} + W_t3 c_j), p(y_j) = softmax(W_o t_j).
    There z weights the old state: :class:`GRUCell` with z's weights negated.

    With a ``transition_depth`` above two, s_j goes through that many GRUs less two before it is read, which have no
    input (Miceli Barone et al. 2017, arXiv:1707.07631, section 2.3.2). All are of one ``cell``, in the paper a
    :class:`GRUCell`. ``layer_norm`` normalises the products of W_init, of the attention and of t, each by itself, as
    Nematus does where its GRUs do. The cell's ``recurrent_dropout`` also drops s'_j in the attention, and s_j,
    E y_{j-1} and c_j in t, with the masks of the GRUs that read them (Nematus draws one for each product).

    s' and s have ``hidden_dim`` units, t ``output_dim``. The paper's GRUs have ``reset=after``. ``attention`` and the
    ``location_`` options are those of :class:`AdditiveAttention`. Dropout is on the embeddings and on t.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        attention_dim: Size,
        output_dim: Size,
        attention: AttentionKind = "content",
        location_filters: Size = 10,
        location_half_width: Size = 5,
        dropout: Rate = 0.0,
        layer_norm: bool = False,
        transition_depth: Annotated[int, Range(2, 1024)] = 2,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim = embeddings.dim, encoder.output_dim
        self.initial_state_projection = (NormedLinear if layer_norm else nn.Linear)(memory_dim, hidden_dim)
        self.cell = cell(dim, hidden_dim, transition_depth=1)  # GRU_1
        self.attention = AdditiveAttention(
            hidden_dim,
            memory_dim,
            attention_dim,
            kind=attention,
            location_filters=location_filters,
            location_half_width=location_half_width,
            layer_norm=layer_norm,
        )
        self.context_cell = cell(memory_dim, hidden_dim, transition_depth=transition_depth - 1)  # GRU_2, ...
        inputs = {"state": hidden_dim, "embedding": dim, "context": memory_dim}
        self.readout_projections = Projections(output_dim, layer_norm=layer_norm, **inputs)
        self.readout_activation = torch.tanh
        self.output_projection = embeddings.make_output(output_dim, "output_dim")
        for layer in (self.initial_state_projection, *self.readout_projections.layers()):
            xavier(layer)

    def _start_from(self, encoded: EncoderOutput) -> Tensor:
        return encoded.mean_state()

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """See :class:`AttentionalDecoder`; in training with the masks of both cells' dropout."""
        state = super().init_state(encoded)
        end = len(state.cache) - self.attention.reads_alignments
        masks = self.context_cell.start_from(state.cache[0])[self.cell.num_states :]
        return state._replace(cache=state.cache[:end] + masks + state.cache[end:])

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        first, second, size = self.cell, self.context_cell, self.cell.num_states
        masks = s[size:]  # of both cells, if any
        between = first(cell_input, s[:size] + masks[:1])[:size] + masks[1:]
        context, alignments = look(second.drop_output(between))
        context = second.drop_input(context, between)
        after = second(second.input_projection(context), between)[:size] + masks
        return first.drop_output(after), context, alignments, after
