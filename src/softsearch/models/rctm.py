"""A recurrent language model on a summary of the source (Kalchbrenner & Blunsom 2013, EMNLP, section 3: RCTM I)."""

import torch
from torch import Tensor, nn

from softsearch.models.cells import ElmanCell
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import xavier
from softsearch.ranges import Rate, Size


class RCTMDecoder(Decoder):
    """The target side of RCTM I: the summary of the source is added in every step.

    s = S csm(e), h_1 = tanh(I v(f_1) + s), h_{i+1} = tanh(R h_i + I v(f_{i+1}) + s), o_{i+1} = O h_i; the paper's sigma
    is tanh here, and h_0 is zero. csm(e) is the final state of the encoder's last layer, its directions side by side.

    h has ``hidden_dim`` units. Dropout is on the embeddings and before the output layer.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self, *, embeddings: Embeddings, encoder: EncoderDescription, hidden_dim: Size, dropout: Rate = 0.0
    ) -> None:
        super().__init__(embeddings, dropout)
        self.summary_projection = nn.Linear(encoder.top_layer().joined_dim, hidden_dim, bias=False)  # S
        self.cell = ElmanCell(embeddings.dim, hidden_dim)  # I, R and a bias
        self.output_projection = embeddings.make_output(hidden_dim)
        xavier(self.summary_projection)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """S csm(e) once for all steps, and h_0 = 0."""
        h = self.summary_projection.weight.new_zeros(encoded.mask.shape[0], self.cell.hidden_dim)
        return DecoderState.initial(encoded, (h,), (self.summary_projection(encoded.final[-1].joined()[0]),))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`."""
        cache, states = state.cache, []
        for x in self._inputs(self.embedding(tgt_tokens), state.memory).unbind(1):
            cache = self.cell(x, cache)
            states.append(cache[0])
        return self.dropout(torch.stack(states, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        memory = state.memory
        embedded = self.embedding(tokens).unflatten(0, (memory.mask.shape[0], -1))  # [sentences, beams, embedding_dim]
        cache = self.cell(self._inputs(embedded, memory).flatten(0, 1), state.cache)
        return StepOutput(self.output_projection(self.dropout(cache[0])), None, state.next(cache))

    def _inputs(self, embedded: Tensor, memory: Memory) -> Tensor:
        """I v(f) + s of a sentence's tokens or of its beams, ``[sentences, any, hidden_dim]``."""
        return self.cell.input_projection(self.dropout(embedded)) + memory.projected[0][:, None]
