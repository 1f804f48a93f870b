"""Multi-head attention, and the slots in which a decoder keeps its past, see :class:`DecoderState`."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.onnx import ops

from softsearch.models.attention import masked_softmax
from softsearch.models.interface import Tensors
from softsearch.models.layers import xavier
from softsearch.models.positions import rotate

# Without cuDNN's, which makes a plan for every new shape, in half a second on an H200: batches have many shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def mask_bias(mask: Tensor) -> Tensor:
    """A bias of energies before a softmax: 0 where ``mask`` is True, the lowest number elsewhere."""
    return torch.where(mask, 0.0, torch.finfo(torch.float32).min)


def with_own_slots(bias: Tensor, sentences: int) -> Tensor:
    """The bias of slots with those that the rows of a step fill, each of which sees its own.

    ``[rows, slots]`` -> ``[sentences, 1, beams, slots + beams]``.
    """
    by_beam = bias.unflatten(0, (sentences, -1))
    beam = torch.arange(by_beam.shape[1], device=bias.device)
    own = mask_bias(beam[:, None] == beam).expand(sentences, -1, -1)
    return torch.cat((by_beam, own), dim=-1)[:, None]


def by_layer(tensors: Tensors, num_layers: int) -> list[Tensors]:
    """The tensors of each layer, from those of all layers one after the other."""
    size = len(tensors) // num_layers
    return [tensors[i : i + size] for i in range(0, len(tensors), size)]


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    Queries, keys and values are ``[batch, heads, len, d_model / heads]``. They are computed separately, so that a
    decoder can cache keys and values. ``batch`` is needed of an ``x`` that may be ``[batch * len, d_model]``. A
    ``mask`` broadcasts to ``[batch, heads, len, keys]``; it is True = visible, or the :func:`mask_bias` of such a mask.
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
        """The same, written out, and the weights ``[batch, heads, len, keys]``."""
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
    """Attention of a sequence to itself. A decoder's past is the keys and values in its slots, :class:`DecoderState`.

    ``angles`` are those of :class:`~softsearch.models.positions.Positions`; with them queries and keys are rotated.
    """

    def start(self, states: Tensor) -> Tensors:
        """No slots yet for each of ``states`` ``[sentences, src_len, d_model]``."""
        sentences, _, d_model = states.shape
        return (states.new_zeros(sentences, self.num_heads, 0, d_model // self.num_heads),) * 2

    def whole(self, x: Tensor, mask: Tensor, angles: Tensor | None) -> Tensor:
        """All positions ``[batch * len, d_model]``, which see what ``mask`` shows; the same shape."""
        return self.attend(*self.extend(x, (), mask.shape[0], angles), mask)

    def sequence(self, x: Tensor, angles: Tensor | None) -> Tensor:
        """All positions, which see those before them and themselves: ``[batch, len, d_model]`` -> the same."""
        return self.attend(*self.extend(x, (), x.shape[0], angles), causal=True).view(x.shape)

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None, angles: Tensor | None = None
    ) -> tuple[Tensor, Tensors, Tensor]:
        """The position that follows ``past``: ``[rows, d_model]`` -> the same, the slots with those of the rows.

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

        Those in ``past`` were rotated before.
        """
        queries, *own = self.project(x, batch, angles)
        keys, values = (torch.cat(pair, dim=2) for pair in zip(past, own, strict=True)) if past else own
        return queries, keys, values

    def project(self, x: Tensor, batch: int, angles: Tensor | None) -> Tensors:
        """The queries, keys and values of ``x``."""
        keys, values = self.keys_values(x, batch)
        return rotate(self.queries(x, batch), angles), rotate(keys, angles), values


class _FusedSelfAttention(SelfAttention):
    """A :class:`SelfAttention` with one product for queries, keys and values, and operators that rotate and attend."""

    def __init__(self, original: SelfAttention) -> None:
        nn.Module.__init__(self)
        self.num_heads, self.output_projection = original.num_heads, original.output_projection
        layers = (original.query_projection, original.key_value_projection)
        weight, bias = (torch.cat([getattr(layer, name).data for layer in layers]) for name in ("weight", "bias"))
        self.projection = nn.Linear(weight.shape[1], weight.shape[0])
        self.projection.weight.data, self.projection.bias.data = weight, bias

    def whole(self, x: Tensor, mask: Tensor, angles: Tensor | None) -> Tensor:
        return self.output_projection(_attention(self.num_heads, *self._by_sentence(x, mask.shape[0], angles), mask)[0])

    def step(
        self, x: Tensor, past: Tensors, bias: Tensor | None, angles: Tensor | None = None
    ) -> tuple[Tensor, Tensors, Tensor]:
        own = self._by_sentence(x, past[0].shape[0], angles)
        y, keys, values, weights = _attention(self.num_heads, *own, bias, *past)
        return self.output_projection(y), (keys, values), weights

    def project(self, x: Tensor, batch: int, angles: Tensor | None) -> Tensors:
        return tuple(self.by_head(t, batch, self.num_heads) for t in self._by_sentence(x, batch, angles))

    def _by_sentence(self, x: Tensor, batch: int, angles: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values ``[batch, len, d_model]``, rotated as :func:`rotate` does."""
        projected, d_model = self.projection(x).unflatten(0, (batch, -1)), x.shape[-1]
        if angles is None:
            queries, keys, values = projected.chunk(3, dim=-1)
        else:
            both, values = projected.split((2 * d_model, d_model), dim=-1)
            cos, sin = (f.expand(*both.shape[:2], -1) for f in (angles.cos(), angles.sin()))
            rotated = ops.rotary_embedding(both, cos, sin, interleaved=True, num_heads=2 * self.num_heads)
            queries, keys = rotated.chunk(2, dim=-1)
        return queries, keys, values


class _FusedAttention(MultiHeadAttention):
    """A :class:`MultiHeadAttention` of :func:`_attention`, with queries, keys and values ``[batch, len, d_model]``."""

    def __init__(self, original: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        vars(self).update(vars(original))

    def by_head(self, x: Tensor, batch: int, heads: int) -> Tensor:
        """No axis of heads: ``[batch, len, dim]`` or ``[batch * len, dim]`` -> ``[batch, len, dim]``."""
        return x.view(batch, -1, x.shape[-1])

    def keys_values(self, memory: Tensor, batch: int) -> tuple[Tensor, ...]:
        return self.by_head(self.key_value_projection(memory.reshape(-1, memory.shape[-1])), batch, 1).chunk(2, dim=-1)

    def with_weights(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        y, _, _, weights = _attention(self.num_heads, queries, keys, values, mask)
        return self.output_projection(y), weights


def _attention(
    heads: int, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *past: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """ONNX's operator Attention, in which nothing is copied to put the heads side by side.

    Args:
        heads: their number.
        queries: ``[batch, len, d_model]``.
        keys: ``[batch, keys, d_model]``.
        values: the same.
        mask: True = visible or a bias, broadcast to ``[batch, heads, len, keys]``.
        past: keys and values that come before, ``[batch, heads, past_len, d_model / heads]``.

    Returns:
        ``[batch * len, d_model]``, the keys and the values with those of the past, and the weights
        ``[batch, heads, len, keys]``.
    """
    # ONNX Runtime does not repeat a mask for all queries.
    mask = None if mask is None else mask.expand(-1, -1, queries.shape[1], -1)
    y, keys, values, weights = ops.attention(
        queries, keys, values, mask, *past, q_num_heads=heads, kv_num_heads=heads, qk_matmul_output_mode=3
    )
    return y.flatten(0, 1), keys, values, weights


def fuse_attention(module: nn.Module) -> None:
    """Gives the attention of an encoder or decoder the form that an exported graph computes."""
    fused = {SelfAttention: _FusedSelfAttention, MultiHeadAttention: _FusedAttention}
    for name, layer in list(module.named_modules()):
        if type(layer) in fused:
            module.set_submodule(name, fused[type(layer)](layer))
