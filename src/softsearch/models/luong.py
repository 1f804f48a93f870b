"""The decoder of Luong, Pham & Manning 2015 (arXiv:1508.04025): attention after the top layer, and input feeding."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from softsearch.models.attention import Attention, AttentionOutput
from softsearch.models.cells import Cell
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import xavier
from softsearch.models.loop_weights import one_gradient_per_matrix
from softsearch.models.recurrent import RecurrentDecoder
from softsearch.ranges import Depth, Rate, Size


class LuongDecoder(RecurrentDecoder):
    """A ``RecurrentDecoder`` with attention from its top state h_t.

    c_t by ``attention``, h~_t = tanh(W_c [c_t; h_t]) (equation 5), p(y_t) = softmax(W_s h~_t) (equation 6). With input
    feeding (section 3.3) the first layer reads [E y_{t-1}; h~_{t-1}], where h~_0 = 0; the cache holds h~ after the
    layers' states, followed by the attention's state.

    All layers and h~ have ``hidden_dim`` units; the paper's cells are LSTMs. Dropout applies to the embeddings, between
    layers and to the h~ that the softmax reads, not to the one fed back (Zaremba et al. 2014, arXiv:1409.2329).

    Raises:
        ConfigError: the encoder's states or the attention's options do not fit.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        attention: Callable[..., Attention],
        num_layers: Depth = 1,
        input_feeding: bool = True,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(
            embeddings=embeddings,
            encoder=encoder,
            cell=cell,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
        self.attention = self.make_attention(encoder, attention)
        self.attentional_projection = xavier(nn.Linear(encoder.output_dim + hidden_dim, hidden_dim, bias=False))  # W_c
        self.feed_projection: nn.Linear | None = None
        if input_feeding:  # the columns of the first layer's W that read h~
            width = self._first_cell.input_projection.out_features
            self.feed_projection = xavier(nn.Linear(hidden_dim, width, bias=False), blocks=width // hidden_dim)

    def make_attention(self, encoder: EncoderDescription, attention: Callable[..., Attention]) -> Attention:
        """The attention to the encoder's states."""
        return attention(self.hidden_dim, encoder.output_dim)

    def source_attention(self) -> list[nn.Module]:
        return [self.attention]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The final states of the encoder's layers, the attention's product with all states, and h~_0 = 0."""
        cache = super().init_state(encoded).cache
        if self.feed_projection is not None:
            cache += (encoded.states.new_zeros(encoded.mask.shape[0], self.hidden_dim),)
        cache += self.attention.start(encoded.mask)
        return DecoderState.initial(encoded, cache, self.attention.project(encoded.states))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        return self.features_and_alignments(tgt_tokens, state)[0]

    def features_and_alignments(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """Runs layer by layer with all steps attending at once, unless a step reads the result of the previous one."""
        if self.feed_projection is None and not self.attention.num_states:
            x = self._top_states(self.dropout(self.embedding(tgt_tokens)), state.cache)
            steps = torch.arange(x.shape[1], device=x.device)
            context, attended = self._look(x, state.memory, state.position[:, None] + steps, ())
            return self.dropout(self._combine(context, x)), attended.alignments
        features, alignments = [], []
        with one_gradient_per_matrix():
            for step_input in self._inputs(tgt_tokens, state).unbind(1):
                attentional, looked, state = self._advance(step_input, state)
                features.append(attentional)
                alignments.append(looked)
        return self.dropout(torch.stack(features, dim=1)), torch.stack(alignments, dim=1)

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        attentional, alignments, after = self._advance(self._inputs(tokens, state), state)
        return StepOutput(self.output_projection(self.dropout(attentional)), alignments, after)

    def _advance(self, x: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Runs one step from the first layer's product with E y; returns h~, the alignments and the next state."""
        end = len(state.cache) - self.attention.num_states
        if self.feed_projection is not None:
            x = x + self.feed_projection(state.cache[end - 1])
        h, cache = self._step_layers(x, state.cache)
        sentences = state.memory.mask.shape[0]  # not len: the exporter would take it for a constant
        query, position = (t.unflatten(0, (sentences, -1)) for t in (h, state.position))  # [sentences, beams, ...]
        context, attended = self._look(query, state.memory, position, state.cache[end:])
        attentional = self._combine(context.flatten(0, 1), h)
        if self.feed_projection is not None:
            cache += (attentional,)
        return attentional, attended.alignments.flatten(0, 1), state.next(cache + attended.state)

    def _look(
        self, query: Tensor, memory: Memory, position: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, AttentionOutput]:
        """Attends as ``Attention.forward`` does; also returns the contexts ``[sentences, queries, memory_dim]``."""
        attended: AttentionOutput = self.attention(query, memory, position, state)
        return attended.weights @ memory.states, attended

    def _combine(self, context: Tensor, h: Tensor) -> Tensor:
        """h~ from context and state; the output layer reads it after dropout."""
        return torch.tanh(self.attentional_projection(torch.cat((context, h), dim=-1)))
