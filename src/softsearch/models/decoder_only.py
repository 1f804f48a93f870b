"""Decoder-only translation: one language model reads the source and goes on to write the target.

The pair is one sequence, x_1 .. x_S EOS BOS y_1 .., whose separator is the source's EOS and the target's BOS (as in Liu
et al. 2018, arXiv:1801.10198, section 4.2.3). Source and target share layers, embeddings and one count of positions:
the target's continue after the real tokens of its own source.
"""

from collections.abc import Collection
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.cells import State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import (
    DecoderState,
    Encoder,
    EncoderDescription,
    EncoderOutput,
    LayerShape,
    StepOutput,
    Tensors,
)
from softsearch.models.layers import Layer
from softsearch.models.multi_head import MultiHeadDecoder, SelfAttention, by_layer, mask_bias, with_own_slots
from softsearch.models.positions import Kind as PositionKind
from softsearch.models.positions import Positions
from softsearch.models.recurrent import RecurrentDecoder
from softsearch.models.transformer import Activation, LayerOptions
from softsearch.ranges import Count, Depth, Rate, Size


class SourceEmbeddings(Encoder):
    """The embeddings of the source and nothing else, for a decoder whose own layers read them."""

    def __init__(self, *, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding: nn.Embedding = embedding
        self.description = EncoderDescription(embedding.embedding_dim)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        return EncoderOutput(self.embedding(src_tokens), src_mask, ())


class DecoderOnlyLayer(Layer):
    """Causal self-attention over the whole sequence and a feed-forward block.

    At position t of the target: softmax(q_t [K_src; K_1..t]' / sqrt(d_k)) [V_src; V_1..t] in each head (Vaswani et al.
    2017, section 3.2, with one softmax over both parts).
    """

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.self_attention = SelfAttention(options.d_model, options.num_heads)
        self.feed_forward = options.feed_forward()
        self.self_attention_residual, self.feed_forward_residual = options.residual(), options.residual()

    def forward(self, x: Tensor, past: Tensors, mask: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensors]:
        """Runs the positions ``x`` ``[batch * len, d_model]``, after those with the keys and values ``past``, if any.

        ``mask`` ``[batch, 1, len, all positions]`` is True where a position is visible. Returns the same shape as
        ``x``, and the keys and values of all positions.
        """
        y = self.self_attention_residual.before(x)
        queries, keys, values = self.self_attention.extend(y, past, mask.shape[0], angles)
        x = self.self_attention_residual.after(x, self.self_attention.attend(queries, keys, values, mask))
        return self.feed_forward_residual(x, self.feed_forward), (keys, values)

    def with_weights(self, x: Tensor, past: Tensors, mask: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensor]:
        """``forward`` without keys and values; also returns the weights, ``[batch, heads, len, all positions]``."""
        y = self.self_attention_residual.before(x)
        y, weights = self.self_attention.with_weights(*self.self_attention.extend(y, past, mask.shape[0], angles), mask)
        return self.feed_forward_residual(self.self_attention_residual.after(x, y), self.feed_forward), weights

    def step(self, x: Tensor, past: Tensors, bias: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensors, Tensor]:
        """Runs one target position, given its past in slots and their bias; also returns the weights of all slots."""
        y, present, weights = self.self_attention.step(self.self_attention_residual.before(x), past, bias, angles)
        x = self.self_attention_residual.after(x, y)
        return self.feed_forward_residual(x, self.feed_forward), present, weights


class DecoderOnlyTransformer(MultiHeadDecoder):
    """A stack of ``DecoderOnlyLayer`` over source and target.

    The memory holds the features of the source, which predict each next source token. The first slots are the source's,
    which all rows see except for padding. Alignments are weights on the source, divided by their sum. The options are
    those of ``TransformerDecoder``.

    Raises:
        ConfigError: source and target have two embedding matrices, or the encoder's states or the heads do not fit
            their width, or there is no such layer or head for the alignments.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        num_layers: Depth,
        d_ff: Size,
        num_heads: Size,
        dropout: Rate = 0.0,
        pre_norm: bool = True,
        activation: Activation = "relu",
        positions: PositionKind = "sinusoidal",
        max_positions: Size = 1024,
        scale_embeddings: bool = True,
        alignment_layer: int = -1,
        alignment_head: Count | None = None,
    ) -> None:
        super().__init__(embeddings, dropout, (num_layers, num_heads), (alignment_layer, alignment_head))
        _check(embeddings, encoder)
        d_model = embeddings.dim
        self.positions = Positions(positions, d_model, num_heads, max_positions, scale=scale_embeddings)
        options = LayerOptions(d_model, d_ff, num_heads, dropout, pre_norm, activation)
        self.layers = nn.ModuleList(DecoderOnlyLayer(options) for _ in range(num_layers))
        self.final_norm = options.final_norm()
        self.output_projection = embeddings.make_output(d_model)

    def source_attention(self) -> list[nn.Module]:
        return [layer.self_attention for layer in cast(list[DecoderOnlyLayer], self.layers)]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Reads the source."""
        batch, length = encoded.mask.shape
        positions = torch.arange(length, device=encoded.mask.device)
        self.positions.check_length(length, "source sentence")
        angles = self.positions.angles(positions)
        x = self.dropout(self.positions(encoded.states, positions)).flatten(0, 1)
        causal = _causal(positions, batch)  # padding is on the right, which no real token attends to
        slots: list[Tensor] = []
        for layer in self.layers:
            x, keys_values = layer(x, (), causal, angles)
            slots += keys_values
        read = encoded._replace(states=self.final_norm(x).view(encoded.states.shape))
        return DecoderState.initial(read, (mask_bias(encoded.mask),), slots=tuple(slots))

    def all_positions(
        self, tgt_tokens: Tensor, state: DecoderState, aligning: Collection[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        batch, length = tgt_tokens.shape
        positions = torch.arange(length, device=tgt_tokens.device)
        on_source = state.memory.mask[:, None, None].expand(-1, -1, length, -1)
        mask = torch.cat((on_source, _causal(positions, batch)), dim=-1)
        self.positions.check_length(state.memory.mask.shape[1] + length, "sentence and its translation")
        position = state.memory.mask.sum(1, keepdim=True) + positions  # [batch, tgt_len]
        read, angles = self.positions(self.embedding(tgt_tokens), position), self.positions.angles(position)
        x = self.dropout(read).flatten(0, 1)
        weights: list[Tensor] = []
        layers = zip(self.layers, by_layer(state.slots, len(self.layers)), strict=True)
        for number, (layer, source) in enumerate(layers):
            if number in aligning:
                x, attended = cast(DecoderOnlyLayer, layer).with_weights(x, source, mask, angles)
                weights.append(attended)
            else:
                x, _ = layer(x, source, mask, angles)
        return self.final_norm(x).view(read.shape), weights

    def over_source(self, weights: Tensor, src_mask: Tensor) -> Tensor:
        # A backend may drop slots that no row sees: fewer than src_len are left where long sentences have ended.
        on_source = functional.pad(weights, (0, src_mask.shape[1]))[:, :, : src_mask.shape[1]]
        return source_alignments(on_source * src_mask[:, None])

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        mask = state.memory.mask
        position = mask.sum(1, keepdim=True) + state.position.view(mask.shape[0], -1)  # [sentences, beams]
        x = self.dropout(self.positions(self.embedding(tokens), position.flatten()))  # [rows, d_model]
        angles = self.positions.angles(position)
        bias = with_own_slots(state.cache[0], mask.shape[0])
        slots: list[Tensor] = []
        weights: list[Tensor] = []
        layers = cast(list[DecoderOnlyLayer], self.layers)
        for layer, past in zip(layers, by_layer(state.slots, len(layers)), strict=True):
            x, present, attended = layer.step(x, past, bias, angles)
            slots.extend(present)
            weights.append(attended)
        alignments = self.alignments(weights[self.alignment_layer], mask).flatten(0, 1)
        after = state.next((bias.flatten(0, 2),), tuple(slots))
        return StepOutput(self.output_projection(self.final_norm(x)), alignments, after)


class DecoderOnlyRNN(RecurrentDecoder):
    """A stack of recurrent layers over source and target: Sutskever et al. 2014 with one set of weights for both sides.

    h_t = f(E x_t, h_{t-1}) from zeros over the source, and on from its last real token over the target. The memory's
    states are features of the source, which predict each next source token. The options are those of
    ``RecurrentDecoder``.

    Raises:
        ConfigError: source and target have two embedding matrices, or the encoder's states do not fit their width.
    """

    def _starts_from(self, embeddings: Embeddings, encoder: EncoderDescription) -> tuple[LayerShape, ...]:
        _check(embeddings, encoder)
        return ()

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Reads the source; in training, source and target share the dropout masks of states."""
        x = self.dropout(encoded.states)
        cache: State = ()
        for layer, start in self._with_states(super().init_state(encoded._replace(final=())).cache):
            masks = start[layer.forward_cell.num_states :]
            states, final = layer(x, encoded.mask, start if masks else None)
            cache += final.forward + masks
            x = self.dropout(states)
        return DecoderState.initial(encoded._replace(states=x), cache)


DecoderOnly = DecoderOnlyTransformer | DecoderOnlyRNN


def source_alignments(weights: Tensor) -> Tensor:
    """Divides weights ``[..., src_len]`` by their sum, which is less than 1, unless it is close to 0."""
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-6)


def _check(embeddings: Embeddings, encoder: EncoderDescription) -> None:
    if embeddings.src is not embeddings.tgt:
        raise ConfigError(
            f"a decoder-only model.decoder reads source and target with one matrix, found model.embeddings.tie="
            f"{embeddings.tie}; set model.embeddings.tie=all, which needs tokenizer.joint=true"
        )
    if encoder.output_dim != embeddings.dim:
        raise ConfigError(
            f"model.encoder gives states of {encoder.output_dim} units to a decoder-only model.decoder, whose layers "
            f"read vectors of model.embeddings.dim={embeddings.dim}; set model.encoder._target_="
            f"{SourceEmbeddings.__module__}.SourceEmbeddings, or make both equal"
        )


def _causal(positions: Tensor, batch: int) -> Tensor:
    """The causal mask ``[batch, 1, len, len]``: each position sees itself and earlier ones."""
    return (positions[:, None] >= positions).expand(batch, 1, -1, -1)
