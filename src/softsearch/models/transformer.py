"""The Transformer (Vaswani et al. 2017, arXiv:1706.03762), post-norm as there or pre-norm (Xiong et al. 2020)."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings, sinusoids
from softsearch.models.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDescription,
    EncoderOutput,
    StepOutput,
    Tensors,
)
from softsearch.models.layers import Dropout, xavier
from softsearch.models.multi_head import (
    MultiHeadAttention,
    SelfAttention,
    fuse_self_attention,
    mask_bias,
    with_own_slots,
)
from softsearch.ranges import Depth, Rate, Size

Kind = Literal["attention", "ssru"]


class Residual(nn.Module):
    """A sublayer's frame: norm(x + dropout(f(x))) in post-norm, x + dropout(f(norm(x))) in pre-norm."""

    def __init__(self, d_model: int, dropout: float, *, pre_norm: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
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


def feed_forward(d_model: int, d_ff: int) -> nn.Sequential:
    """max(0, x W_1 + b_1) W_2 + b_2 (section 3.3)."""
    hidden, output = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    for layer in (hidden, output):
        xavier(layer)
    return nn.Sequential(OrderedDict(hidden_projection=hidden, relu=nn.ReLU(), output_projection=output))


class ConvolutionalBlock(nn.Module):
    """M + C'_3([C_3(M); C_5(M); C_7(M)]) (Gao et al. 2020, arXiv:2004.14788, section 3.2), before self-attention.

    Each C_w is a convolution over w positions with d_model filters, zeros outside of the sentence, and a leaky ReLU, as
    in the authors' code, whose filters are also separable. ``widths`` are those of the parallel convolutions.
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


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward block, and a :class:`ConvolutionalBlock` before them if there are widths."""

    def __init__(
        self, d_model: int, d_ff: int, num_heads: int, dropout: float, *, pre_norm: bool, widths: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.convolutions = ConvolutionalBlock(d_model, widths) if widths else None
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = feed_forward(d_model, d_ff)
        self.self_attention_residual = Residual(d_model, dropout, pre_norm=pre_norm)
        self.feed_forward_residual = Residual(d_model, dropout, pre_norm=pre_norm)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[batch, src_len, d_model]``, mask ``[batch, 1, 1, src_len]``."""
        attention = self.self_attention
        if self.convolutions is not None:
            x = self.convolutions(x, mask)
        x = self.self_attention_residual(x, lambda y: attention(y, *attention.keys_values(y, y.shape[0]), mask))
        return self.feed_forward_residual(x, self.feed_forward)


class SSRU(nn.Module):
    """The simpler simple recurrent unit (Kim et al. 2019, aclanthology D19-5632), in place of self-attention.

    f_t = sigmoid(W_f x_t + b_f), c_t = f_t * c_{t-1} + (1 - f_t) * W x_t, h_t = ReLU(c_t). A step costs the same at
    every position: its past is c alone, ``[rows, d_model]``. Both products are done for all steps at once.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.forget_projection = nn.Linear(d_model, d_model)  # W_f, b_f
        self.input_projection = nn.Linear(d_model, d_model, bias=False)  # W
        for layer in (self.forget_projection, self.input_projection):
            xavier(layer)

    def start(self, states: Tensor) -> Tensors:
        """c_0 = 0 for each of ``states`` ``[sentences, src_len, d_model]``."""
        return (self.forget_projection.weight.new_zeros(states.shape[0], states.shape[2]),)

    def sequence(self, x: Tensor) -> Tensor:
        """All positions: ``[batch, len, d_model]`` -> the same."""
        return self._follow(x, *self.start(x))[0]

    def step(self, x: Tensor, past: Tensors, bias: Tensor | None) -> tuple[Tensor, Tensors]:
        """The position that follows ``past``: ``[rows, d_model]`` -> the same, and the new past; there are no slots."""
        del bias
        y, c = self._follow(x[:, None], *past)
        return y[:, 0], (c,)

    def _follow(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """The positions ``x`` ``[rows, len, d_model]`` after ``c``: the same of h, and the last c."""
        # Under autocast the products are in bfloat16, but not the state: its small changes would be rounded away.
        forget, new = torch.sigmoid(self.forget_projection(x)).to(c.dtype), self.input_projection(x).to(c.dtype)
        states = []
        for f, candidate in zip(forget.unbind(1), new.unbind(1), strict=True):
            c = torch.lerp(candidate, c, f)
            states.append(c)
        return torch.relu(torch.stack(states, dim=1)), c


class DecoderLayer(nn.Module):
    """Causal self-attention or an SSRU, attention to the source and a feed-forward block."""

    def __init__(
        self, d_model: int, d_ff: int, num_heads: int, dropout: float, *, pre_norm: bool, self_attention: Kind
    ) -> None:
        super().__init__()
        self.self_attention = SSRU(d_model) if self_attention == "ssru" else SelfAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = feed_forward(d_model, d_ff)
        residuals = (Residual(d_model, dropout, pre_norm=pre_norm) for _ in range(3))
        self.self_attention_residual, self.cross_attention_residual, self.feed_forward_residual = residuals

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """All positions at once: ``x`` ``[batch, tgt_len, d_model]``; keys and values of the source."""
        x = self.self_attention_residual(x, self.self_attention.sequence)
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, keys, values, mask))
        return self.feed_forward_residual(x, self.feed_forward)

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None, source: Tensors, src_bias: Tensor
    ) -> tuple[Tensor, Tensors, Tensor]:
        """One position: ``x`` ``[rows, d_model]`` -> x, the new past, alignments ``[rows, src_len]``.

        The beams of a sentence are side by side on the axis of queries; ``src_bias`` is ``[sentences, 1, 1, src_len]``.
        """
        y, present = self.self_attention.step(self.self_attention_residual.before(x), past, bias)
        x = self.self_attention_residual.after(x, y)
        queries = self.cross_attention.queries(self.cross_attention_residual.before(x), src_bias.shape[0])
        keys, values = source
        y, weights = self.cross_attention.with_weights(queries, keys, values, src_bias)
        x = self.cross_attention_residual.after(x, y)
        return self.feed_forward_residual(x, self.feed_forward), present, weights.mean(1).flatten(0, 1)


def embed(embedding: nn.Embedding, tokens: Tensor, position: Tensor) -> Tensor:
    """Scaled embeddings of ``tokens`` plus their position, of the same shape or broadcastable (sections 3.4, 3.5)."""
    return with_positions(embedding(tokens), position)


def with_positions(x: Tensor, position: Tensor) -> Tensor:
    """The same of embeddings ``[..., d_model]``."""
    dim = x.shape[-1]
    return x * dim**0.5 + sinusoids(position, dim)


def check_heads(d_model: int, num_heads: int) -> None:
    """Raises a ConfigError unless the width divides into heads of even width."""
    if d_model % (2 * num_heads):
        raise ConfigError(
            f"model.embeddings.dim={d_model} with num_heads={num_heads}: expected an even width for each head; "
            "change one of them"
        )


class TransformerEncoder(Encoder):
    """A stack of :class:`EncoderLayer`; the width of the embeddings is d_model.

    Dropout is on the embeddings and on each sublayer's output (section 5.4). With ``pre_norm`` norms come before each
    sublayer instead of after, and once more at the end. ``convolution_widths`` are those of a
    :class:`ConvolutionalBlock` in each layer, for characters; without any there is none.

    Raises:
        ConfigError: the width does not divide into heads of even width, or a convolution is even.
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
        convolution_widths: list[Size] | None = None,
    ) -> None:
        super().__init__()
        d_model = embedding.embedding_dim
        check_heads(d_model, num_heads)
        if any(width % 2 == 0 for width in convolution_widths or ()):
            raise ConfigError(
                f"model.encoder.convolution_widths is {convolution_widths}, expected odd widths, which have a middle"
            )
        self.description = EncoderDescription(d_model)
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, d_ff, num_heads, dropout, pre_norm=pre_norm, widths=convolution_widths or ())
            for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """See :class:`Encoder`."""
        position = torch.arange(src_tokens.shape[1], device=src_tokens.device)
        x = self.dropout(embed(self.embedding, src_tokens, position))
        for layer in self.layers:
            x = layer(x, src_mask[:, None, None])
        return EncoderOutput(self.final_norm(x), src_mask, ())


class TransformerDecoder(Decoder):
    """A stack of :class:`DecoderLayer`.

    Each layer has two of the state's slots, or with ``self_attention=ssru`` one :class:`SSRU` state in the cache,
    ``[rows, d_model]``; alignments are those of the last layer, averaged over its heads. The other options are the
    encoder's.

    Raises:
        ConfigError: the encoder's states or the heads do not fit the width of the embeddings.
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
        self_attention: Kind = "attention",
    ) -> None:
        super().__init__(embeddings, dropout)
        d_model = embeddings.dim
        if encoder.output_dim != d_model:
            raise ConfigError(
                f"the encoder's states have {encoder.output_dim} units, expected "
                f"model.embeddings.dim={d_model}; make both equal"
            )
        check_heads(d_model, num_heads)
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, d_ff, num_heads, dropout, pre_norm=pre_norm, self_attention=self_attention)
            for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()
        self.output_projection = embeddings.make_output(d_model)

    def make_exportable(self) -> None:
        """See :class:`Decoder`."""
        fuse_self_attention(self)

    def source_attention(self) -> list[nn.Module]:
        """See :class:`Decoder`."""
        return [layer.cross_attention for layer in cast(list[DecoderLayer], self.layers)]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Keys and values of the source for each layer, and an empty past."""
        layers = cast(list[DecoderLayer], self.layers)
        states = encoded.states
        projected = tuple(t for layer in layers for t in layer.cross_attention.keys_values(states, states.shape[0]))
        past = tuple(t for layer in layers for t in layer.self_attention.start(states))
        if isinstance(layers[0].self_attention, SSRU):
            return DecoderState.initial(encoded, past, projected)
        return DecoderState.initial(encoded, (mask_bias(encoded.mask[:, :0]),), projected, past)

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`."""
        position = torch.arange(tgt_tokens.shape[1], device=tgt_tokens.device)
        x = self.dropout(embed(self.embedding, tgt_tokens, position))
        mask = state.memory.mask[:, None, None]
        for layer, (keys, values) in zip(self.layers, self._by_layer(state.memory.projected), strict=True):
            x = layer(x, keys, values, mask)
        return self.final_norm(x)

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        x = self.dropout(embed(self.embedding, tokens, state.position[:1]))  # [rows, d_model]
        mask = state.memory.mask
        bias = with_own_slots(state.cache[0], mask.shape[0]) if state.slots else None
        src_bias = mask_bias(mask)[:, None, None]
        present: list[Tensor] = []
        alignments = x
        pasts, sources = self._by_layer(state.slots or state.cache), self._by_layer(state.memory.projected)
        for layer, past, source in zip(cast(list[DecoderLayer], self.layers), pasts, sources, strict=True):
            x, new, alignments = layer.step(x, past, bias, source, src_bias)
            present.extend(new)
        kept = (tuple(present),) if bias is None else ((bias.flatten(0, 2),), tuple(present))
        return StepOutput(self.output_projection(self.final_norm(x)), alignments, state.next(*kept))

    def _by_layer(self, tensors: Tensors) -> list[Tensors]:
        size = len(tensors) // len(self.layers)
        return [tensors[i : i + size] for i in range(0, len(tensors), size)]
