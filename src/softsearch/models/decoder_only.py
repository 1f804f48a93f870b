"""Decoder-only translation: one language model reads the source and goes on to write the target.

The pair is one sequence, x_1 .. x_S EOS BOS y_1 .., whose separator is the source's EOS and the target's BOS (as in Liu
et al. 2018, arXiv:1801.10198, section 4.2.3). Source and target share layers, embeddings and positions, which run on:
the target's begin behind the real tokens of its own source. Memory and cache are two parts of one past: what was
computed of the source belongs to the sentence.
"""

from typing import cast

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import MultiHeadAttention
from softsearch.models.cells import State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDescription,
    EncoderOutput,
    LayerShape,
    StepOutput,
)
from softsearch.models.recurrent import RecurrentDecoder
from softsearch.models.transformer import Past, Residual, check_heads, embed, feed_forward, with_positions
from softsearch.ranges import Depth, Rate, Size


class SourceEmbeddings(Encoder):
    """The embeddings of the source and nothing else, for a decoder whose own layers read them."""

    def __init__(self, *, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding: nn.Embedding = embedding
        self.description = EncoderDescription(embedding.embedding_dim)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """See :class:`Encoder`."""
        return EncoderOutput(self.embedding(src_tokens), src_mask, ())


class DecoderOnlyAttention(MultiHeadAttention):
    """Causal self-attention over the sequence; the rows of a sentence share the keys and values of its source.

    At position t of the target: softmax(q_t [K_src; K_1..t]' / sqrt(d_k)) [V_src; V_1..t] in each head (Vaswani et al.
    2017, section 3.2, with one softmax over both parts).
    """

    def step(self, x: Tensor, past: Past, source: Past, mask: Tensor) -> tuple[Tensor, Past, Tensor]:
        """The position that follows ``past``: ``x`` ``[rows, 1, d_model]``, ``mask`` ``[sentences, src_len]``.

        Returns the same as ``x``, the longer past, and the part of the weights that is on the source, ``[rows, heads,
        src_len]``.
        """
        keys, values = source  # [sentences, heads, src_len, d_model / heads]
        present = tuple(torch.cat(pair, dim=2) for pair in zip(past, self.keys_values(x), strict=True))
        q = self._heads(self.query_projection(x))  # [rows, heads, 1, d_model / heads]
        q = q * q.shape[-1] ** -0.5
        energies = (_by_sentence(q, len(mask)) @ keys.transpose(-1, -2)).masked_fill(
            ~mask[:, None, None], torch.finfo(q.dtype).min
        )  # [sentences, heads, beams, src_len]
        both = (_by_row(energies), q @ present[0].transpose(-1, -2))  # [rows, heads, 1, src_len or position]
        on_source, on_target = torch.cat(both, dim=-1).softmax(-1).split([part.shape[-1] for part in both], dim=-1)
        heads = _by_row(_by_sentence(on_source, len(mask)) @ values) + on_target @ present[1]
        return self.output_projection(heads.transpose(1, 2).flatten(-2)), present, on_source.squeeze(2)


def _by_sentence(x: Tensor, sentences: int) -> Tensor:
    """``[rows, heads, 1, dim]`` -> ``[sentences, heads, beams, dim]``."""
    return x.squeeze(2).unflatten(0, (sentences, -1)).transpose(1, 2)


def _by_row(x: Tensor) -> Tensor:
    """``[sentences, heads, beams, dim]`` -> ``[rows, heads, 1, dim]``."""
    return x.transpose(1, 2).flatten(0, 1)[:, :, None]


class DecoderOnlyLayer(nn.Module):
    """Causal self-attention over the whole sequence and a feed-forward block."""

    def __init__(self, d_model: int, d_ff: int, num_heads: int, dropout: float, *, pre_norm: bool) -> None:
        super().__init__()
        self.self_attention = DecoderOnlyAttention(d_model, num_heads)
        self.feed_forward = feed_forward(d_model, d_ff)
        self.self_attention_residual = Residual(d_model, dropout, pre_norm=pre_norm)
        self.feed_forward_residual = Residual(d_model, dropout, pre_norm=pre_norm)

    def forward(self, x: Tensor, past: Past, mask: Tensor) -> tuple[Tensor, Past]:
        """The positions ``x`` ``[batch, len, d_model]`` that follow those with the keys and values ``past``, if any.

        ``mask`` ``[batch or 1, 1, len, all positions]`` is True where one is visible. Returns the same as ``x``, and
        the keys and values of these positions.
        """
        y = self.self_attention_residual.before(x)
        own = self.self_attention.keys_values(y)
        keys, values = (torch.cat(pair, dim=2) for pair in zip(past, own, strict=True)) if past else own
        x = self.self_attention_residual.after(x, self.self_attention(y, keys, values, mask))
        return self.feed_forward_residual(x, self.feed_forward), own

    def step(self, x: Tensor, past: Past, source: Past, mask: Tensor) -> tuple[Tensor, Past, Tensor]:
        """One position of the target; arguments and results are those of :meth:`DecoderOnlyAttention.step`."""
        y, present, weights = self.self_attention.step(self.self_attention_residual.before(x), past, source, mask)
        x = self.self_attention_residual.after(x, y)
        return self.feed_forward_residual(x, self.feed_forward), present, weights


class DecoderOnlyTransformer(Decoder):
    """A stack of :class:`DecoderOnlyLayer` over source and target, with the sinusoids of Vaswani et al. 2017.

    The memory holds the features of the source, which predict each next source token, and the source's keys and values
    of each layer; the cache holds those of the target, ``[rows, heads, position, d_model / heads]``. Alignments are the
    weights of the last layer on the source, averaged over its heads and divided by their sum. The options are those of
    :class:`~softsearch.models.transformer.TransformerDecoder`.

    Raises:
        ConfigError: source and target have two embedding matrices, or the encoder's states or the heads do not fit
            their width.
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
    ) -> None:
        super().__init__(embeddings, dropout)
        _check(embeddings, encoder)
        d_model = embeddings.dim
        check_heads(d_model, num_heads)
        self.layers = nn.ModuleList(
            DecoderOnlyLayer(d_model, d_ff, num_heads, dropout, pre_norm=pre_norm) for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()
        self.output_projection = embeddings.make_output(d_model)

    def source_attention(self) -> list[nn.Module]:
        """See :class:`Decoder`."""
        return [layer.self_attention for layer in cast(list[DecoderOnlyLayer], self.layers)]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Reads the source."""
        positions = torch.arange(encoded.mask.shape[1], device=encoded.mask.device)
        x = self.dropout(with_positions(encoded.states, positions))
        causal = _causal(positions)  # padding is on the right, where no real token looks
        projected: list[Tensor] = []
        for layer in self.layers:
            x, keys_values = layer(x, (), causal)
            projected += keys_values
        past = tuple(p[:, :, :0] for p in projected)
        return DecoderState.initial(encoded._replace(states=self.final_norm(x)), past, tuple(projected))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """See :class:`Decoder`."""
        positions = torch.arange(tgt_tokens.shape[1], device=tgt_tokens.device)
        src_mask, causal = state.memory.mask[:, None, None], _causal(positions)
        x = self.dropout(embed(self.embedding, tgt_tokens, state.memory.mask.sum(1, keepdim=True) + positions))
        mask = torch.cat((src_mask.expand(-1, -1, len(positions), -1), causal.expand(len(src_mask), 1, -1, -1)), dim=-1)
        for layer, source in zip(self.layers, _pairs(state.memory.projected), strict=True):
            x, _ = layer(x, source, mask)
        return self.final_norm(x)

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """See :class:`Decoder`."""
        mask = state.memory.mask
        position = (mask.sum(1, keepdim=True) + state.position.view(len(mask), -1)).flatten()
        x = self.dropout(embed(self.embedding, tokens, position))[:, None]  # [rows, 1, d_model]
        cache: list[Tensor] = []
        weights = x
        pasts, sources = _pairs(state.cache), _pairs(state.memory.projected)
        for layer, past, source in zip(cast(list[DecoderOnlyLayer], self.layers), pasts, sources, strict=True):
            x, present, weights = layer.step(x, past, source, mask)
            cache.extend(present)
        logits = self.output_projection(self.final_norm(x[:, 0]))
        return StepOutput(logits, source_alignments(weights.mean(1)), state.next(tuple(cache)))


class DecoderOnlyRNN(RecurrentDecoder):
    """A stack of recurrent layers over source and target: Sutskever et al. 2014 with one set of weights for both sides.

    h_t = f(E x_t, h_{t-1}) from zeros over the source, and on from its last real token over the target. The memory's
    states are features of the source, which predict each next source token. The options are those of
    :class:`~softsearch.models.recurrent.RecurrentDecoder`.

    Raises:
        ConfigError: source and target have two embedding matrices, or the encoder's states do not fit their width.
    """

    def _starts_from(self, embeddings: Embeddings, encoder: EncoderDescription) -> tuple[LayerShape, ...]:
        _check(embeddings, encoder)
        return ()

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """Reads the source; in training with dropout masks of states that the target shares."""
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
    """Weights ``[..., src_len]`` that sum up to less than 1, divided by their sum; sums near 0 stay as they are."""
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


def _causal(positions: Tensor) -> Tensor:
    """``[1, 1, len, len]``, True at a position itself and those before it."""
    return (positions[:, None] >= positions)[None, None]


def _pairs(tensors: Past) -> list[Past]:
    """Keys and values of each layer."""
    return [tensors[i : i + 2] for i in range(0, len(tensors), 2)]
