"""A recurrent language model on a summary of the source (Kalchbrenner & Blunsom 2013, EMNLP, section 3: RCTM I)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import uniform_alignments
from softsearch.models.cells import ElmanCell
from softsearch.models.interface import Decoder, DecoderState, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import Dropout


class SummaryDecoder(Decoder):
    """The target side of RCTM I: the summary of the source is added in every step.

    s = S csm(e), h_1 = tanh(I v(f_1) + s), h_{i+1} = tanh(R h_i + I v(f_{i+1}) + s), o_{i+1} = O h_i; the paper's sigma
    is tanh here, and h_0 is zero.

    Args:
        embedding: target embeddings v.
        make_output: makes the output layer O.
        memory_dim: width of the encoder's states, which are not used.
        final_dims: widths of what the encoder ends with; the first one is the summary.
        hidden_dim: units of h.
        dropout: on the embeddings and before the output layer.

    Raises:
        ConfigError: the encoder makes no summary.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        make_output: Callable[[int], nn.Linear],
        memory_dim: int,
        final_dims: tuple[int, ...],
        hidden_dim: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        del memory_dim
        if not final_dims:
            raise ConfigError("model.decoder needs an encoder that ends with a summary; choose another model.encoder")
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.summary = nn.Linear(final_dims[0], hidden_dim, bias=False)  # S
        self.cell = ElmanCell(embedding.embedding_dim, hidden_dim)  # I, R and a bias
        self.output = make_output(hidden_dim)
        nn.init.xavier_uniform_(self.summary.weight)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """S csm(e) once for all steps, and h_0 = 0."""
        sentences = encoded.mask.shape[0]
        memory = Memory(encoded.states, encoded.mask, (self.summary(encoded.final[0]),))
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
        alignments = uniform_alignments(memory.mask, cache[0])
        return StepOutput(logits, alignments, DecoderState(memory, cache, state.position + 1))

    def _inputs(self, embedded: Tensor, memory: Memory) -> Tensor:
        """I v(f) + s of a sentence's tokens or of its beams, ``[sentences, any, hidden_dim]``."""
        inputs: Tensor = self.cell.input(self.dropout(embedded)) + memory.projected[0][:, None]
        return inputs
