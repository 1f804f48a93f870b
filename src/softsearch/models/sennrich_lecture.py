"""The decoder of Sennrich's lectures on neural machine translation: RNNsearch with plain RNNs, in three steps."""

from collections.abc import Callable

import torch
from torch import Tensor

from softsearch.models.attention import AttentionKind
from softsearch.models.cells import Cell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription
from softsearch.models.rnnsearch import Look, LookFirstDecoder
from softsearch.ranges import Rate, Size


class LookUpdateGenerateDecoder(LookFirstDecoder):
    """Look, Update, Generate, where RNNsearch generates before it updates.

    s_0 = tanh(W_s <-h_1); for each i: c_i by additive attention, e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j);
    s_i = tanh(W_y E y_{i-1} + U_y s_{i-1} + C c_i), or another ``cell`` than the plain RNN;
    t_i = tanh(U_o s_i + W_o E y_{i-1} + C_o c_i), p(y_i) = softmax(V_o t_i).

    s has ``hidden_dim`` units, t ``output_dim``. ``attention`` and the ``location_`` options are
    those of :class:`AdditiveAttention`. Dropout is on the embeddings and on t.

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
        output_dim: Size,
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
            readout_dim=output_dim,
            output=(output_dim, "output_dim"),
            attention=attention,
            location_filters=location_filters,
            location_half_width=location_half_width,
            dropout=dropout,
        )
        self.readout_activation = torch.tanh

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        context, alignments = look(s[0])
        after = self._next(cell_input, s, context)
        return after[0], context, alignments, after
