"""The Transformer (Vaswani et al. 2017, arXiv:1706.03762), post-norm as there or pre-norm (Xiong et al. 2020)."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import DecoderState, Encoder, EncoderDescription, EncoderOutput, StepOutput, Tensors
from softsearch.models.layers import Dropout, Layer, xavier
from softsearch.models.multi_head import (
    MultiHeadAttention,
    MultiHeadDecoder,
    SelfAttention,
    by_layer,
    mask_bias,
    with_own_slots,
)
from softsearch.models.positions import Kind as PositionKind
from softsearch.models.positions import Positions
from softsearch.models.ssru import SSRU
from softsearch.ranges import Count, Depth, Positive, Rate, Size

Kind = Literal["attention", "ssru"]
Activation = Literal["relu", "gelu", "swish"]
_NORM_EPS = 1e-5  # of layer norms, in PyTorch
_ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}


class Residual(nn.Module):
    """The residual around a sublayer: norm(x + dropout(f(x))) in post-norm, x + dropout(f(norm(x))) in pre-norm."""

    def __init__(self, d_model: int, dropout: float, *, pre_norm: bool, norm_eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, norm_eps)
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Applies ``sublayer`` to ``x`` ``[batch, len, d_model]``."""
        return self.after(x, sublayer(self.before(x)))

    def before(self, x: Tensor) -> Tensor:
        """The input of the sublayer."""
        return self.norm(x) if self.pre_norm else x

    def after(self, x: Tensor, y: Tensor) -> Tensor:
        """Adds the output ``y`` of the sublayer to ``x``."""
        x = x + self.dropout(y)
        return x if self.pre_norm else self.norm(x)


class LayerOptions(NamedTuple):
    """The options that encoder and decoder layers share."""

    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    pre_norm: bool
    activation: Activation
    norm_eps: float = _NORM_EPS

    def residual(self) -> Residual:
        """Makes the residual connection around a sublayer."""
        return Residual(self.d_model, self.dropout, pre_norm=self.pre_norm, norm_eps=self.norm_eps)

    def final_norm(self) -> nn.Module:
        """Makes the norm after the last layer; post-norm has none."""
        return nn.LayerNorm(self.d_model, self.norm_eps) if self.pre_norm else nn.Identity()

    def feed_forward(self) -> nn.Sequential:
        """f(x W_1 + b_1) W_2 + b_2 (section 3.3).

        f is max(0, x) in the paper; ``gelu`` is x Phi(x) (Hendrycks & Gimpel 2016, arXiv:1606.08415), ``swish`` is
        x sigmoid(x) (Ramachandran et al. 2017, arXiv:1710.05941).
        """
        hidden, output = nn.Linear(self.d_model, self.d_ff), nn.Linear(self.d_ff, self.d_model)
        for layer in (hidden, output):
            xavier(layer)
        f = _ACTIVATIONS[self.activation]()
        return nn.Sequential(OrderedDict(hidden_projection=hidden, activation=f, output_projection=output))


class ConvolutionalBlock(nn.Module):
    """M + C'_3([C_3(M); C_5(M); C_7(M)]) (Gao et al. 2020, arXiv:2004.14788, section 3.2), before self-attention.

    Each C_w is a convolution over w positions with d_model filters, zeros outside the sentence, and a leaky ReLU, as in
    the authors' code, where the filters are also separable. ``widths`` are those of the parallel convolutions.
    """

    def __init__(self, d_model: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.parallel = nn.ModuleList(nn.Conv1d(d_model, d_model, width, padding="same") for width in widths)
        self.fusion = nn.Conv1d(len(widths) * d_model, d_model, 3, padding="same")  # C'_3

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[batch, src_len, d_model]``, mask ``[batch, 1, 1, src_len]``."""
        real = mask[:, 0].to(x.dtype)
        columns = x.transpose(1, 2) * real  # [batch, d_model, src_len]
        joined = torch.cat([functional.leaky_relu(layer(columns)) for layer in self.parallel], dim=1)
        return x + functional.leaky_relu(self.fusion(joined * real)).transpose(1, 2)


class EncoderLayer(Layer):
    """Self-attention and a feed-forward block, and a ``ConvolutionalBlock`` before them if there are widths."""

    def __init__(self, options: LayerOptions, widths: Sequence[int] = ()) -> None:
        super().__init__()
        self.convolutions = ConvolutionalBlock(options.d_model, widths) if widths else None
        self.self_attention = SelfAttention(options.d_model, options.num_heads)
        self.feed_forward = options.feed_forward()
        self.self_attention_residual, self.feed_forward_residual = options.residual(), options.residual()

    def forward(self, x: Tensor, mask: Tensor, angles: Tensor | None) -> Tensor:
        """``[batch * src_len, d_model]``, mask ``[batch, 1, 1, src_len]``, angles of the positions."""
        if self.convolutions is not None:
            x = self.convolutions(x.unflatten(0, (mask.shape[0], -1)), mask).flatten(0, 1)
        x = self.self_attention_residual(x, lambda y: self.self_attention.whole(y, mask, angles))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(Layer):
    """Causal self-attention or an SSRU, attention to the source and a feed-forward block."""

    def __init__(self, options: LayerOptions, self_attention: Kind) -> None:
        super().__init__()
        d_model, num_heads = options.d_model, options.num_heads
        self.self_attention = SSRU(d_model) if self_attention == "ssru" else SelfAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = options.feed_forward()
        residuals = (options.residual() for _ in range(3))
        self.self_attention_residual, self.cross_attention_residual, self.feed_forward_residual = residuals

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor, angles: Tensor | None) -> Tensor:
        """All positions at once: ``x`` ``[batch, tgt_len, d_model]``; keys and values of the source."""
        x = self.self_attention_residual(x, lambda y: self.self_attention.sequence(y, angles))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, keys, values, mask))
        return self.feed_forward_residual(x, self.feed_forward)

    def with_weights(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor, angles: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """``forward``; also returns the weights on the source, ``[batch, heads, tgt_len, src_len]``."""
        x = self.self_attention_residual(x, lambda y: self.self_attention.sequence(y, angles))
        queries = self.cross_attention.queries(self.cross_attention_residual.before(x), keys.shape[0])
        y, weights = self.cross_attention.with_weights(queries, keys, values, mask)
        x = self.cross_attention_residual.after(x, y.view(x.shape))
        return self.feed_forward_residual(x, self.feed_forward), weights

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None, source: Tensors, src_bias: Tensor, angles: Tensor | None
    ) -> tuple[Tensor, Tensors, Tensor]:
        """Runs one position: ``x`` ``[rows, d_model]`` -> the same, the new past, the weights on the source.

        The beams of a sentence are side by side on the axis of queries; ``src_bias`` is ``[sentences, 1, 1, src_len]``,
        the weights are ``[sentences, heads, beams, src_len]``.
        """
        y, present = self.self_attention.step(self.self_attention_residual.before(x), past, bias, angles)[:2]
        x = self.self_attention_residual.after(x, y)
        queries = self.cross_attention.queries(self.cross_attention_residual.before(x), src_bias.shape[0])
        y, weights = self.cross_attention.with_weights(queries, source[0], source[1], src_bias)
        x = self.cross_attention_residual.after(x, y)
        return self.feed_forward_residual(x, self.feed_forward), present, weights


class TransformerEncoder(Encoder):
    """A stack of ``EncoderLayer``; the width of the embeddings is d_model.

    Dropout applies to the embeddings and to each sublayer's output (section 5.4). With ``pre_norm`` norms come before
    each sublayer instead of after, and once more at the end; they add ``norm_eps`` to variances. ``activation`` is the
    f of ``LayerOptions.feed_forward``; ``positions``, ``max_positions`` and ``scale_embeddings`` are options of
    ``Positions``. ``convolution_widths`` puts a ``ConvolutionalBlock`` with
    these widths into each layer, for characters.

    Raises:
        ConfigError: the width does not divide into heads of even width, or a convolution's width is even.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        num_layers: Depth,
        d_ff: Size,
        num_heads: Size,
        dropout: Rate = 0.0,
        pre_norm: bool = True,
        norm_eps: Positive = _NORM_EPS,
        activation: Activation = "relu",
        positions: PositionKind = "sinusoidal",
        max_positions: Size = 1024,
        scale_embeddings: bool = True,
        convolution_widths: list[Size] | None = None,
    ) -> None:
        super().__init__()
        d_model = embedding.embedding_dim
        self.positions = Positions(positions, d_model, num_heads, max_positions, scale=scale_embeddings)
        if any(width % 2 == 0 for width in convolution_widths or ()):
            raise ConfigError(
                f"model.encoder.convolution_widths is {convolution_widths}, expected odd widths, which have a middle"
            )
        self.description = EncoderDescription(d_model, max_src_len=self.positions.max_len)
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        options = LayerOptions(d_model, d_ff, num_heads, dropout, pre_norm, activation, norm_eps)
        self.layers = nn.ModuleList(EncoderLayer(options, convolution_widths or ()) for _ in range(num_layers))
        self.final_norm = options.final_norm()

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes all positions at once.

        Raises:
            InputError: a sentence is longer than the learned positions.
        """
        self.positions.check_length(src_tokens.shape[1], "source sentence")
        return self.encode(src_tokens, src_mask, torch.arange(src_tokens.shape[1], device=src_tokens.device))

    def encode(self, src_tokens: Tensor, src_mask: Tensor, position: Tensor) -> EncoderOutput:
        """Encodes tokens at these positions, ``[(batch,) src_len]``."""
        x, angles = self.dropout(self.positions(self.embedding(src_tokens), position)), self.positions.angles(position)
        rows = x.flatten(0, 1)
        for layer in self.layers:
            rows = layer(rows, src_mask[:, None, None], angles)
        return EncoderOutput(self.final_norm(rows).view(x.shape), src_mask, ())


class TransformerDecoder(MultiHeadDecoder):
    """A stack of ``DecoderLayer``.

    Each layer has two of the state's slots, or with ``self_attention=ssru`` one ``SSRU`` state in the cache,
    ``[rows, d_model]``. Options are the encoder's, and those of ``MultiHeadDecoder`` for alignments.

    Raises:
        ConfigError: the encoder's states or the heads do not fit the width of the embeddings, ``rotary`` positions are
            combined with an SSRU, or there is no such layer or head.
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
        norm_eps: Positive = _NORM_EPS,
        activation: Activation = "relu",
        positions: PositionKind = "sinusoidal",
        max_positions: Size = 1024,
        scale_embeddings: bool = True,
        self_attention: Kind = "attention",
        alignment_layer: int = -1,
        alignment_head: Count | None = None,
    ) -> None:
        super().__init__(embeddings, dropout, (num_layers, num_heads), (alignment_layer, alignment_head))
        d_model = embeddings.dim
        if encoder.output_dim != d_model:
            raise ConfigError(
                f"the encoder's states have {encoder.output_dim} units, expected "
                f"model.embeddings.dim={d_model}; make both equal"
            )
        if self_attention == "ssru" and positions == "rotary":
            raise ConfigError(
                "model.decoder.positions=rotary rotates queries and keys, which model.decoder.self_attention=ssru does "
                "not have; set other positions"
            )
        self.positions = Positions(positions, d_model, num_heads, max_positions, scale=scale_embeddings)
        options = LayerOptions(d_model, d_ff, num_heads, dropout, pre_norm, activation, norm_eps)
        self.layers = nn.ModuleList(DecoderLayer(options, self_attention) for _ in range(num_layers))
        self.final_norm = options.final_norm()
        self.output_projection = embeddings.make_output(d_model)

    def source_attention(self) -> list[nn.Module]:
        return [layer.cross_attention for layer in cast(list[DecoderLayer], self.layers)]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Keys and values of the source for each layer, and an empty past."""
        layers, states = cast(list[DecoderLayer], self.layers), encoded.states
        projected = tuple(t for layer in layers for t in layer.cross_attention.keys_values(states, states.shape[0]))
        past = tuple(t for layer in layers for t in layer.self_attention.start(states))
        if isinstance(layers[0].self_attention, SSRU):
            return DecoderState.initial(encoded, past, projected)
        return DecoderState.initial(encoded, (mask_bias(encoded.mask[:, :0]),), projected, past)

    def embed(self, tokens: Tensor, position: Tensor) -> Tensor:
        """The input of the first layer; ``position`` broadcasts to ``tokens``."""
        return self.positions(self.embedding(tokens), position)

    def all_positions(
        self, tgt_tokens: Tensor, state: DecoderState, aligning: Collection[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        self.positions.check_length(tgt_tokens.shape[1], "target sentence")
        position = torch.arange(tgt_tokens.shape[1], device=tgt_tokens.device)
        x, angles = self.dropout(self.embed(tgt_tokens, position)), self.positions.angles(position)
        mask = state.memory.mask[:, None, None]
        weights: list[Tensor] = []
        layers = zip(self.layers, by_layer(state.memory.projected, len(self.layers)), strict=True)
        for number, (layer, (keys, values)) in enumerate(layers):
            if number in aligning:  # a fused kernel has no weights
                x, attended = cast(DecoderLayer, layer).with_weights(x, keys, values, mask, angles)
                weights.append(attended)
            else:
                x = layer(x, keys, values, mask, angles)
        return self.final_norm(x), weights

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        position = state.position[:1]
        x, angles = self.dropout(self.embed(tokens, position)), self.positions.angles(position)
        mask = state.memory.mask
        bias = with_own_slots(state.cache[0], mask.shape[0]) if state.slots else None
        src_bias = mask_bias(mask)[:, None, None]
        present, weights = list[Tensor](), list[Tensor]()
        pasts, sources = (by_layer(t, len(self.layers)) for t in (state.slots or state.cache, state.memory.projected))
        for layer, past, source in zip(cast(list[DecoderLayer], self.layers), pasts, sources, strict=True):
            x, new, attended = layer.step(x, past, bias, source, src_bias, angles)
            present.extend(new)
            weights.append(attended)
        kept = (tuple(present),) if bias is None else ((bias.flatten(0, 2),), tuple(present))
        alignments = self.alignments(weights[self.alignment_layer], mask).flatten(0, 1)
        return StepOutput(self.output_projection(self.final_norm(x)), alignments, state.next(*kept))
