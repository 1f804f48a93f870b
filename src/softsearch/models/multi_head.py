"""Multi-head attention, and the slots in which a decoder keeps its past, see ``DecoderState``."""

from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from softsearch.errors import ConfigError
from softsearch.models.attention import masked_softmax
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, Tensors
from softsearch.models.layers import xavier
from softsearch.models.positions import rotate

# Not cuDNN's: it plans each new shape, in half a second on an H200, and batches have many shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def mask_bias(mask: Tensor) -> Tensor:
    """The additive form of a mask: 0 where ``mask`` is True, the lowest number elsewhere."""
    return torch.where(mask, 0.0, torch.finfo(torch.float32).min)


def with_own_slots(bias: Tensor, sentences: int) -> Tensor:
    """Extends the bias of slots by those that a step fills; each row sees its own new slot.

    ``[rows, slots]`` -> ``[sentences, 1, beams, slots + beams]``.
    """
    by_beam = bias.unflatten(0, (sentences, -1))
    beam = torch.arange(by_beam.shape[1], device=bias.device)
    own = mask_bias(beam[:, None] == beam).expand(sentences, -1, -1)
    return torch.cat((by_beam, own), dim=-1)[:, None]


def by_layer(tensors: Tensors, num_layers: int) -> list[Tensors]:
    """Groups the tensors of all layers, which follow one another, by layer."""
    size = len(tensors) // num_layers
    return [tensors[i : i + size] for i in range(0, len(tensors), size)]


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    Queries, keys and values are ``[batch, heads, len, d_model / heads]``. They are computed separately, so that a
    decoder can cache keys and values. ``batch`` is needed where ``x`` is ``[batch * len, d_model]``. A
    ``mask`` broadcasts to ``[batch, heads, len, keys]``; it is True = visible, or the ``mask_bias`` of such a mask.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_value_projection = nn.Linear(d_model, 2 * d_model)
        self.output_projection = nn.Linear(d_model, d_model)
        xavier(self.query_projection)
        xavier(self.key_value_projection, blocks=2)
        xavier(self.output_projection)

    def queries(self, x: Tensor, batch: int) -> Tensor:
        """The queries of ``x``."""
        return self.by_head(self.query_projection(x), batch, self.num_heads)

    def keys_values(self, memory: Tensor, batch: int) -> tuple[Tensor, ...]:
        """The keys and the values of ``memory``."""
        return self.by_head(self.key_value_projection(memory), batch, 2 * self.num_heads).chunk(2, dim=1)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Attends from ``x``; returns the same shape."""
        return self.attend(self.queries(x, keys.shape[0]), keys, values, mask, causal=causal).view(x.shape)

    def attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Attends from ``queries``; returns ``[batch * len, d_model]``."""
        if queries.device.type != "cpu":
            if mask is not None and mask.is_floating_point():
                mask = mask.to(queries.dtype)
            with sdpa_kernel(_KERNELS):
                heads = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
            return self._join(heads)
        # The fused CPU kernel's backward pass takes several times as long as the two products of with_weights.
        if causal:
            mask = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool, device=queries.device).tril()
        return self.with_weights(queries, keys, values, mask)[0]

    def with_weights(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attends step by step, without a fused kernel; also returns the weights ``[batch, heads, len, keys]``."""
        energies = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
        if mask is None:
            weights = energies.softmax(-1)
        elif mask.is_floating_point():
            weights = (energies + mask.to(energies.dtype)).softmax(-1)
        else:
            weights = masked_softmax(energies, mask)
        return self._join(weights @ values), weights

    def by_head(self, x: Tensor, batch: int, heads: int) -> Tensor:
        """``[batch, len, dim]`` or ``[batch * len, dim]`` -> ``[batch, heads, len, dim / heads]``."""
        return x.view(batch, -1, heads, x.shape[-1] // heads).transpose(1, 2)

    def _join(self, heads: Tensor) -> Tensor:
        """``[batch, heads, len, d_model / heads]`` -> ``[batch * len, d_model]``."""
        return self.output_projection(heads.transpose(1, 2).flatten(0, 1).flatten(1))


class SelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself. A decoder's past is the keys and values in its slots (``DecoderState``).

    ``angles``, from ``Positions``, rotate queries and keys.
    """

    def start(self, states: Tensor) -> Tensors:
        """Empty slots for the sentences of ``states`` ``[sentences, src_len, d_model]``."""
        sentences, _, d_model = states.shape
        return (states.new_zeros(sentences, self.num_heads, 0, d_model // self.num_heads),) * 2

    def whole(self, x: Tensor, mask: Tensor, angles: Tensor | None) -> Tensor:
        """Attends from all positions, ``[batch * len, d_model]``, to those that ``mask`` shows; the same shape."""
        return self.attend(*self.extend(x, (), mask.shape[0], angles), mask)

    def sequence(self, x: Tensor, angles: Tensor | None) -> Tensor:
        """Attends causally from all positions: ``[batch, len, d_model]`` -> the same."""
        return self.attend(*self.extend(x, (), x.shape[0], angles), causal=True).view(x.shape)

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None, angles: Tensor | None = None
    ) -> tuple[Tensor, Tensors, Tensor]:
        """Attends from the position after ``past``: ``[rows, d_model]`` -> the same, and the slots with the new ones.

        ``bias`` is that of all slots, ``[sentences, 1, beams, slots]``. Their weights come last, ``[sentences, heads,
        beams, slots]``.
        """
        queries, keys, values = self.extend(x, past, past[0].shape[0], angles)
        y, weights = self.with_weights(queries, keys, values, bias)
        return y, (keys, values), weights

    def extend(
        self, x: Tensor, past: Tensors, batch: int, angles: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The queries of ``x`` ``[batch * len, d_model]``, and the keys and values of ``past``, if any, and ``x``.

        The keys in ``past`` are rotated already.
        """
        queries, *own = self.project(x, batch, angles)
        keys, values = (torch.cat(pair, dim=2) for pair in zip(past, own, strict=True)) if past else own
        return queries, keys, values

    def project(self, x: Tensor, batch: int, angles: Tensor | None) -> Tensors:
        """The queries, keys and values of ``x``."""
        keys, values = self.keys_values(x, batch)
        return rotate(self.queries(x, batch), angles), rotate(keys, angles), values


class MultiHeadDecoder(Decoder):
    """A decoder whose layers attend to the source with several heads.

    Its alignments are the weights of ``alignment_layer`` (from 0; -1 is the last) and ``alignment_head`` (from 0; None:
    the mean of all heads).

    Raises:
        ConfigError: there is no such layer or head.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        dropout: float,
        num_layers_heads: tuple[int, int],
        alignments: tuple[int, int | None],
    ) -> None:
        super().__init__(embeddings, dropout)
        (num_layers, num_heads), (alignment_layer, alignment_head) = num_layers_heads, alignments
        if not -num_layers <= alignment_layer < num_layers or (alignment_head or 0) >= num_heads:
            head = "" if alignment_head is None else f" and model.decoder.alignment_head {alignment_head}"
            raise ConfigError(
                f"model.decoder.alignment_layer is {alignment_layer}{head}, expected one of {num_layers} layers "
                f"(from 0, or -1 for the last) and {num_heads} heads (from 0); change them (with "
                "method=guided_alignment: method.layer and method.head)"
            )
        self.alignment_layer, self.alignment_head = alignment_layer % num_layers, alignment_head
        head = "mean of its heads" if alignment_head is None else f"head {alignment_head}"
        self.alignments_name = f"layer {self.alignment_layer}, {head}"

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Computes all positions at once.

        Raises:
            InputError: a sentence is longer than learned positions.
        """
        return self.all_positions(tgt_tokens, state)[0]

    def features_and_alignments(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        features, (weights,) = self.all_positions(tgt_tokens, state, (self.alignment_layer,))
        return features, self.alignments(weights, state.memory.mask)

    def alignments(self, weights: Tensor, src_mask: Tensor) -> Tensor:
        """Alignments from a layer's weights, ``[batch, heads, queries, ...]`` -> ``[batch, queries, positions]``."""
        chosen = weights.mean(1) if self.alignment_head is None else weights[:, self.alignment_head]
        return self.over_source(chosen, src_mask)

    def all_heads(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """The attention of each head, ``[layers, heads, batch, tgt_len, positions]``."""
        mask = state.memory.mask
        layers = self.all_positions(tgt_tokens, state, range(len(self.source_attention())))[1]
        heads = [self.over_source(head, mask) for weights in layers for head in weights.unbind(1)]
        return torch.stack(heads).unflatten(0, (len(layers), -1))

    def all_positions(
        self, tgt_tokens: Tensor, state: DecoderState, aligning: Collection[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """The features, and the weights of the layers ``aligning``, ``[batch, heads, tgt_len, ...]``."""
        raise NotImplementedError

    def over_source(self, weights: Tensor, src_mask: Tensor) -> Tensor:
        """Weights ``[batch, queries, ...]`` as a distribution over the source, ``[batch, queries, positions]``."""
        return weights
