"""A recurrent language model on a summary of the source (Kalchbrenner & Blunsom 2013, EMNLP, section 3: RCTM I)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.cells import ElmanCell
from softsearch.models.interface import (
    Decoder,
    DecoderState,
    EncoderOutput,
    LayerShape,
    Memory,
    StepOutput,
    top_shape,
)
from softsearch.models.layers import Dropout
from softsearch.ranges import Rate, Size


class RCTMDecoder(Decoder):
    """The target side of RCTM I: the summary of the source is added in every step.

    s = S csm(e), h_1 = tanh(I v(f_1) + s), h_{i+1} = tanh(R h_i + I v(f_{i+1}) + s), o_{i+1} = O h_i; the paper's sigma
    is tanh here, and h_0 is zero.

    Args:
        embedding: target embeddings v.
        make_output: makes the output layer O.
        memory_dim: width of the encoder's states, which are not used.
        final_shapes: of the encoder's last states; that of the last layer, its directions side by side, is csm(e).
        hidden_dim: units of h.
        dropout: on the embeddings and before the output layer.

    Raises:
        ConfigError: the encoder has no last state.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        make_output: Callable[[int], nn.Linear],
        memory_dim: int,
        final_shapes: tuple[LayerShape, ...],
        hidden_dim: Size,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        del memory_dim
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.summary = nn.Linear(top_shape(final_shapes).joined_dim, hidden_dim, bias=False)  # S
        self.cell = ElmanCell(embedding.embedding_dim, hidden_dim)  # I, R and a bias
        self.output = make_output(hidden_dim)
        nn.init.xavier_uniform_(self.summary.weight)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """S csm(e) once for all steps, and h_0 = 0."""
        sentences = encoded.mask.shape[0]
        memory = Memory(encoded.states, encoded.mask, (self.summary(encoded.final[-1].joined().h),))
        h = self.summary.weight.new_zeros(sentences, self.cell.hidden_dim)
        return DecoderState(memory, (h,), encoded.mask.new_zeros(sentences, dtype=torch.int64))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`."""
        inputs = self._inputs(self.embedding(tgt_tokens), state.memory)
        cache, states = state.cache, []
        for x in inputs.unbind(1):
            cache = self.cell(x, cache)
            states.append(cache[0])
        features: Tensor = self.dropout(torch.stack(states, dim=1))
        return features

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        memory = state.memory
        embedded = self.embedding(tokens).unflatten(0, (memory.mask.shape[0], -1))  # [sentences, beams, embedding_dim]
        cache = self.cell(self._inputs(embedded, memory).flatten(0, 1), state.cache)
        logits = self.output(self.dropout(cache[0]))
        return StepOutput(logits, None, DecoderState(memory, cache, state.position + 1))

    def _inputs(self, embedded: Tensor, memory: Memory) -> Tensor:
        """I v(f) + s of a sentence's tokens or of its beams, ``[sentences, any, hidden_dim]``."""
        inputs: Tensor = self.cell.input(self.dropout(embedded)) + memory.projected[0][:, None]
        return inputs
