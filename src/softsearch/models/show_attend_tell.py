"""Captions from feature vectors (Xu et al. 2015, arXiv:1502.03044), with soft attention."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.attention import AdditiveAttention
from softsearch.models.cells import LSTMCell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import DecoderState, Encoder, EncoderDescription, EncoderOutput
from softsearch.models.layers import Projections, xavier
from softsearch.models.rnnsearch import AttentionalDecoder, Look
from softsearch.ranges import Rate, Size


class FeatureEncoder(Encoder):
    """The annotation vectors a_1, ..., a_L of section 3.1.1: the features of the data as they are.

    EOS, the last token of a source, has none: nothing attends to it. ``feature_dim`` is the width of the vectors.
    """

    def __init__(self, *, embedding: nn.Embedding, feature_dim: Size) -> None:
        super().__init__()
        del embedding
        self.embedding = None
        self.description = EncoderDescription(feature_dim, feature_dim=feature_dim)

    def forward(self, src_tokens: Tensor, src_mask: Tensor, src_features: Tensor | None = None) -> EncoderOutput:
        """See :class:`Encoder`; of a source without any vector, EOS is a vector of zeros."""
        assert src_features is not None
        first = torch.arange(src_mask.shape[1], device=src_mask.device) == 0
        mask = functional.pad(src_mask[:, 1:], (0, 1)) | first  # followed by another token
        return EncoderOutput(src_features.masked_fill(~mask[..., None], 0), mask, ())


class ShowAttendTellDecoder(AttentionalDecoder):
    """The LSTM of section 3.1.2 with the attention of section 4.2: Look, Update, Generate.

    c_0 = tanh(W_c mean_i a_i), h_0 = tanh(W_h mean_i a_i); for each t: alpha_t by additive attention from h_{t-1},
    z_t = beta_t sum_i alpha_ti a_i with the gate beta_t = sigmoid(f_beta(h_{t-1})) (section 4.2.1),
    (h_t, c_t) = LSTM(h_{t-1}, c_{t-1}; E y_{t-1}, z_t), p(y_t) = softmax(L_o(E y_{t-1} + L_h h_t + L_z z_t)).

    h has ``hidden_dim`` units, and so has c. Dropout is on the embeddings and on what L_o reads. The penalty of section
    4.2.1 on annotations that get little attention in all is left out.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        hidden_dim: Size,
        attention_dim: Size,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim = embeddings.dim, encoder.output_dim
        self.initial_state_projection = xavier(nn.Linear(memory_dim, 2 * hidden_dim), blocks=2)  # W_h, W_c
        self.attention = AdditiveAttention(hidden_dim, memory_dim, attention_dim)
        self.gate_projection = xavier(nn.Linear(hidden_dim, 1))  # f_beta
        self.cell = LSTMCell(dim, hidden_dim)
        self.cell_context_projection = xavier(nn.Linear(memory_dim, 4 * hidden_dim, bias=False), blocks=4)
        self.readout_projections = Projections(dim, state=hidden_dim, context=memory_dim)  # L_h, L_z
        self.output_projection = embeddings.make_output(dim, "embeddings.dim")  # L_o
        for layer in self.readout_projections.layers():
            xavier(layer)

    def source_attention(self) -> list[nn.Module]:
        """See :class:`Decoder`."""
        return [self.attention, self.gate_projection]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """h_0 and c_0, and the attention's product with the annotations once for all steps."""
        project = self.initial_state_projection
        state = torch.tanh(project(encoded.mean_state())).to(project.weight.dtype).chunk(2, dim=-1)
        return DecoderState.initial(encoded, self.cell.start_from(*state), self.attention.project(encoded.states))

    def _update(self, cell_input: Tensor, s: State, look: Look) -> tuple[Tensor, Tensor, Tensor, State]:
        context, alignments = look(s[0])
        context = torch.sigmoid(self.gate_projection(s[0])) * context
        s = self.cell(cell_input + self.cell_context_projection(context), s)
        return s[0], context, alignments, s

    def _readout(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        return self.dropout(embedded + self.readout_projections(state=s, context=context))
