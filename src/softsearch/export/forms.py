"""Exportable forms of models: they compute the same numbers with fewer products per step."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.onnx import ops

from softsearch.models.attentional import AttentionalDecoder
from softsearch.models.decoder_only import DecoderOnlyTransformer
from softsearch.models.interface import Tensors
from softsearch.models.layers import NormedLinear
from softsearch.models.multi_head import MultiHeadAttention, SelfAttention
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder


def make_exportable(model: nn.Module) -> None:
    """Converts a model and its modules to these forms; it can no longer be trained."""
    for part in list(model.modules()):
        if isinstance(part, TransformerEncoder | TransformerDecoder | DecoderOnlyTransformer):
            _fuse_attention(part)
        elif isinstance(part, AttentionalDecoder):
            _project_annotations(part)


def see_all(decoder: nn.Module) -> None:
    """Lets self-attention see all slots, for the only hypothesis of one sentence, which has no padding."""
    for part in decoder.modules():
        if isinstance(part, _FusedSelfAttention):
            part.sees_all = True


def _fuse_attention(stack: nn.Module) -> None:
    """Replaces the attention of all layers by ONNX's operator, which copies nothing."""
    fused = {SelfAttention: _FusedSelfAttention, MultiHeadAttention: _FusedAttention}
    for name, layer in list(stack.named_modules()):
        if type(layer) in fused:
            stack.set_submodule(name, fused[type(layer)](layer))


def _project_annotations(decoder: AttentionalDecoder) -> None:
    """Replaces W c_i by sum_j alpha_ij (W h_j), and computes W h_j once per sentence."""
    names = [name for name in decoder.context_layers() if name is not None]
    layers = [cast(nn.Linear, decoder.get_submodule(name)) for name in names]
    if None in decoder.context_layers() or any(type(layer) not in (nn.Linear, NormedLinear) for layer in layers):
        return  # the context has other uses
    weight = torch.cat([layer.weight.data for layer in layers])
    decoder.values = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    decoder.values.weight.data = weight
    decoder.values_at = len(decoder.attention.project(weight.new_zeros(1, 1, weight.shape[1])))
    first = 0
    for name, layer in zip(names, layers, strict=True):
        decoder.set_submodule(name, _Columns(layer, first))
        first += layer.out_features


class _Columns(nn.Module):
    """Replaces a linear layer: selects some columns of its input."""

    def __init__(self, layer: nn.Linear, first: int) -> None:
        super().__init__()
        self.columns = slice(first, first + layer.out_features)
        self.norm = layer.norm if isinstance(layer, NormedLinear) else None
        self.bias: nn.Parameter | None = layer.bias

    def forward(self, context: Tensor) -> Tensor:
        """``[rows, all]`` -> ``[rows, out_features]``."""
        product = context[:, self.columns] if self.bias is None else context[:, self.columns] + self.bias
        return product if self.norm is None else self.norm(product)


class _FusedSelfAttention(SelfAttention):
    """A ``SelfAttention`` with one product for queries, keys and values, and ONNX's operators for the rest."""

    sees_all = False

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
        y, keys, values, weights = _attention(self.num_heads, *own, None if self.sees_all else bias, *past)
        return self.output_projection(y), (keys, values), weights

    def project(self, x: Tensor, batch: int, angles: Tensor | None) -> Tensors:
        return tuple(self.by_head(t, batch, self.num_heads) for t in self._by_sentence(x, batch, angles))

    def _by_sentence(self, x: Tensor, batch: int, angles: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Returns queries, keys and values ``[batch, len, d_model]``, rotated as in training."""
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
    """A ``MultiHeadAttention`` by ``_attention``, with queries, keys and values ``[batch, len, d_model]``."""

    def __init__(self, original: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        vars(self).update(vars(original))

    def by_head(self, x: Tensor, batch: int, heads: int) -> Tensor:
        """Adds no axis of heads: ``[batch, len, dim]`` or ``[batch * len, dim]`` -> ``[batch, len, dim]``."""
        return x.view(batch, -1, x.shape[-1])

    def keys_values(self, memory: Tensor, batch: int) -> tuple[Tensor, ...]:
        return self.by_head(self.key_value_projection(memory.reshape(-1, memory.shape[-1])), batch, 1).chunk(2, dim=-1)

    def with_weights(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        y, _, _, weights = _attention(self.num_heads, queries, keys, values, mask)
        return self.output_projection(y), weights


def _attention(
    heads: int, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *past: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Calls ONNX's operator Attention, which does not copy tensors to separate the heads.

    Args:
        heads: number of heads.
        queries: ``[batch, len, d_model]``.
        keys: ``[batch, keys, d_model]``.
        values: the same.
        mask: True = visible or a bias, broadcast to ``[batch, heads, len, keys]``.
        past: earlier keys and values, ``[batch, heads, past_len, d_model / heads]``.

    Returns:
        ``[batch * len, d_model]``, the keys and values including the past ones, and the weights
        ``[batch, heads, len, keys]``.
    """
    # ONNX Runtime does not broadcast a mask over queries.
    mask = None if mask is None else mask.expand(-1, -1, queries.shape[1], -1)
    y, keys, values, weights = ops.attention(
        queries, keys, values, mask, *past, q_num_heads=heads, kv_num_heads=heads, qk_matmul_output_mode=3
    )
    return y.flatten(0, 1), keys, values, weights
