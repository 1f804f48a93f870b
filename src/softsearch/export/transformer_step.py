"""The step of a Transformer's decoder in an exported graph, whose keys and values stay where they are."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.attention import MultiHeadAttention
from softsearch.models.decoder_only import DecoderOnlyLayer, DecoderOnlyTransformer, source_alignments
from softsearch.models.interface import Decoder, DecoderState, EncoderOutput
from softsearch.models.transformer import DecoderLayer, SelfAttention, TransformerDecoder, embed, with_positions

LOWEST = torch.finfo(torch.float32).min
Tensors = tuple[Tensor, ...]


def transformer_step(decoder: Decoder) -> "SlotsStep | None":
    """The step of a decoder with slots; None of one without keys and values."""
    if isinstance(decoder, DecoderOnlyTransformer):
        return DecoderOnlyStep(decoder)
    if not isinstance(decoder, TransformerDecoder):
        return None
    layers = cast(list[DecoderLayer], decoder.layers)
    return (
        TransformerStep(decoder) if all(isinstance(layer.self_attention, SelfAttention) for layer in layers) else None
    )


class TransformerStep(nn.Module):
    """Computes what :meth:`TransformerDecoder.step` does, in fewer operators, on ``[rows, d_model]`` throughout.

    Every row that a sentence has ever had keeps its keys and values in a slot, ``[sentences, heads, slots, d_model /
    heads]``. A beam attends to the slots of its ancestors alone, so that reordering the beams changes only a bias.
    """

    def __init__(self, decoder: TransformerDecoder) -> None:
        super().__init__()
        self.decoder = decoder
        layers = cast(list[DecoderLayer], decoder.layers)
        self.self_attentions = nn.ModuleList(_Attention(cast(MultiHeadAttention, x.self_attention)) for x in layers)
        self.cross_attentions = nn.ModuleList(_Attention(x.cross_attention, own_keys=False) for x in layers)

    def start(self, encoded: EncoderOutput) -> tuple[DecoderState, Tensor]:
        """The first state, whose cache is the slots, and their bias: there are none yet."""
        return self.decoder.init_state(encoded), encoded.states.new_zeros(encoded.states.shape[0], 1, 0)

    def forward(
        self, tokens: Tensor, position: Tensor, bias: Tensor, src_mask: Tensor, memory: Tensors, slots: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        """Reads ``tokens`` ``[sentences, beams]``, all of them at the same ``position``.

        ``bias`` is ``[sentences, beams, slots + beams]``, 0 at a beam's ancestors and itself, else the lowest number.
        ``memory`` and ``slots`` hold the keys and values of each layer. Returns logits ``[rows, vocab]``, alignments
        ``[rows, src_len]`` and the slots, those of these rows appended.
        """
        sentences = tokens.shape[0]
        x = embed(self.decoder.embedding, tokens.flatten(), position.flatten()[:1])
        bias, src_bias = bias[:, None], torch.where(src_mask, 0.0, LOWEST)[:, None, None]
        present: list[Tensor] = []
        weights = src_bias
        for index, layer in enumerate(cast(list[DecoderLayer], self.decoder.layers)):
            own = slice(2 * index, 2 * index + 2)
            attention = cast(_Attention, self.self_attentions[index])
            query, *new = attention.project(layer.self_attention_residual.before(x), sentences)
            present += (torch.cat(pair, dim=2) for pair in zip(slots[own], new, strict=True))
            y, _ = attention(query, *present[own], bias)
            x = layer.self_attention_residual.after(x, y)
            attention = cast(_Attention, self.cross_attentions[index])
            (query,) = attention.project(layer.cross_attention_residual.before(x), sentences)
            y, weights = attention(query, *memory[own], src_bias)
            x = layer.feed_forward_residual(layer.cross_attention_residual.after(x, y), layer.feed_forward)
        logits = self.decoder.output_projection(self.decoder.final_norm(x))
        return logits, weights.mean(1).flatten(0, 1), tuple(present)


class DecoderOnlyStep(nn.Module):
    """The same for :class:`DecoderOnlyTransformer`.

    A sentence's first slots are its source, which all of its beams see; nobody sees those of padding, which the runtime
    may drop. The source is read as the target is, all of its positions in one step.
    """

    def __init__(self, decoder: DecoderOnlyTransformer) -> None:
        super().__init__()
        self.decoder = decoder
        layers = cast(list[DecoderOnlyLayer], decoder.layers)
        self.self_attentions = nn.ModuleList(_Attention(layer.self_attention) for layer in layers)

    def start(self, encoded: EncoderOutput) -> tuple[DecoderState, Tensor]:
        """See :class:`TransformerStep`; the memory is empty."""
        positions = torch.arange(encoded.mask.shape[1])
        x = with_positions(encoded.states, positions).flatten(0, 1)
        causal = torch.where(positions[:, None] >= positions, 0.0, LOWEST)[None]
        _, _, slots = self._read(x, causal, encoded.mask.shape[0])
        empty = encoded._replace(states=encoded.states[:, :, :0])
        return DecoderState.initial(empty, slots), torch.where(encoded.mask, 0.0, LOWEST)[:, None]

    def forward(
        self, tokens: Tensor, position: Tensor, bias: Tensor, src_mask: Tensor, memory: Tensors, slots: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        """See :class:`TransformerStep`."""
        del memory
        position = position + src_mask.sum(1, keepdim=True)
        x = embed(self.decoder.embedding, tokens.flatten(), position.flatten())
        x, weights, present = self._read(x, bias, tokens.shape[0], slots)
        # Fewer slots than src_len are left where long sentences have ended; no real token is beyond them.
        on_source = functional.pad(weights.mean(1), (0, src_mask.shape[1]))[:, :, : src_mask.shape[1]]
        alignments = source_alignments(on_source * src_mask[:, None])
        return self.decoder.output_projection(self.decoder.final_norm(x)), alignments.flatten(0, 1), present

    def _read(self, x: Tensor, bias: Tensor, sentences: int, slots: Tensors = ()) -> tuple[Tensor, Tensor, Tensors]:
        """Reads ``x`` ``[rows, d_model]``: returns x, the last layer's weights and the slots, those of x appended."""
        bias = bias[:, None]
        present: list[Tensor] = []
        weights = bias
        for index, layer in enumerate(cast(list[DecoderOnlyLayer], self.decoder.layers)):
            own = slice(2 * index, 2 * index + 2)
            attention = cast(_Attention, self.self_attentions[index])
            query, *new = attention.project(layer.self_attention_residual.before(x), sentences)
            present += (torch.cat(pair, dim=2) for pair in zip(slots[own], new, strict=True)) if slots else new
            y, weights = attention(query, *present[own], bias)
            x = layer.feed_forward_residual(layer.self_attention_residual.after(x, y), layer.feed_forward)
        return x, weights, tuple(present)


class _Attention(nn.Module):
    """A :class:`MultiHeadAttention` with one product for queries, keys and values, and its scale in the weights."""

    def __init__(self, original: MultiHeadAttention, *, own_keys: bool = True) -> None:
        super().__init__()
        query, self.num_heads = original.query_projection, original.num_heads
        scale = (query.out_features // self.num_heads) ** -0.5
        others = [original.key_value_projection] if own_keys else []
        self.projection = nn.Linear(query.in_features, query.out_features + sum(o.out_features for o in others))
        self.projection.weight.data = torch.cat([query.weight.data * scale, *(o.weight.data for o in others)])
        self.projection.bias.data = torch.cat([query.bias.data * scale, *(o.bias.data for o in others)])
        self.output_projection = original.output_projection

    def project(self, x: Tensor, sentences: int) -> Tensors:
        """``[rows, d_model]`` -> queries (and keys and values), ``[sentences, heads, beams, d_model / heads]`` each."""
        projected = self.projection(x)  # [rows, 1 or 3 * d_model]
        parts = projected.shape[1] // x.shape[1]
        heads = projected.view(sentences, -1, parts * self.num_heads, x.shape[1] // self.num_heads).transpose(1, 2)
        return heads.split(self.num_heads, 1) if parts > 1 else (heads,)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what the beams read, ``[rows, d_model]``, and the weights ``[sentences, heads, beams, keys]``."""
        weights = (query @ keys.transpose(-1, -2) + bias).softmax(-1)
        heads = (weights @ values).transpose(1, 2)  # [sentences, beams, heads, d_model / heads]
        return self.output_projection(heads.flatten(0, 1).flatten(1)), weights


SlotsStep = TransformerStep | DecoderOnlyStep
