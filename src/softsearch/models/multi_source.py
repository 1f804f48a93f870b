"""Translation from several sources at once (Zoph & Knight 2016, arXiv:1601.00710): an encoder for each, and attention.

The sources are one line, with a tag between them: ``a man <and> un homme``. Each ends with the tag or with EOS. If a
line has too few sources, the missing ones are just EOS; extra tags are tokens of the last source. The first source may
be feature vectors, such as an image's with its caption (Calixto, Liu & Campbell 2017, P17-1175, attend to both in this
way).
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import Attention, AttentionOutput
from softsearch.models.feature_encoder import FeatureEncoder
from softsearch.models.interface import (
    DecoderState,
    Encoder,
    EncoderDescription,
    EncoderOutput,
    FinalState,
    LayerShape,
    Memory,
    Sources,
)
from softsearch.models.layers import xavier
from softsearch.models.luong import LuongDecoder
from softsearch.ranges import Size
from softsearch.text.vocabulary import FIRST_TAG, PAD


class MultiSourceEncoder(Encoder):
    """An encoder for each source of a line; their last states are combined (section 3.1, "Basic").

    In each layer h = tanh(W_c [h_1; h_2]) and, for LSTMs, c = c_1 + c_2, with both directions of a bidirectional layer
    side by side. The states of the sources are also side by side, and 0 outside their own part of the line: any decoder
    with attention can read them, and attends to all sources at once.

    Args:
        embedding: shared by all sources.
        encoder: called with ``embedding=``, returns the encoder of one source.
        num_sources: 2 in the paper.
        feature_dim: the first source is feature vectors of this width, attended to unchanged.

    Raises:
        ConfigError: the encoder of one source has fewer states than tokens, or no source is text.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        encoder: Callable[..., Encoder],
        num_sources: Size = 2,
        feature_dim: Size | None = None,
    ) -> None:
        super().__init__()
        self.embedding: nn.Embedding = embedding
        feature_encoders = [] if feature_dim is None else [FeatureEncoder(embedding=embedding, feature_dim=feature_dim)]
        texts = [encoder(embedding=embedding) for _ in range(num_sources - len(feature_encoders))]
        if not texts:
            raise ConfigError(
                "model.encoder reads feature vectors alone (num_sources=1); set model.encoder.num_sources=2 for text "
                "with them, or use model=show_attend_tell"
            )
        self.encoders = nn.ModuleList([*feature_encoders, *texts])
        one = texts[-1].description
        if one.tokens_per_position > 1:
            raise ConfigError(
                f"model.encoder.encoder has a state for every {one.tokens_per_position} tokens, but a "
                "MultiSourceEncoder needs one for each token; set model.encoder.encoder to a RecurrentEncoder"
            )
        self.state_projections = nn.ModuleList(  # W_c
            xavier(nn.Linear(len(texts) * layer.joined_dim, layer.joined_dim, bias=False)) for layer in one.layers
        )
        dims = tuple(cast(Encoder, part).description.output_dim for part in self.encoders)
        self.description = one._replace(
            output_dim=sum(dims),
            layers=tuple(LayerShape(layer.joined_dim, num_states=layer.num_states) for layer in one.layers),
            source_dims=dims,
            feature_dim=feature_dim,
        )

    def forward(self, src_tokens: Tensor, src_mask: Tensor, src_features: Tensor | None = None) -> EncoderOutput:
        begins, masks = find_sources(src_tokens, src_mask, len(self.encoders))
        positions = torch.arange(src_tokens.shape[1], device=src_tokens.device)
        encoded = []
        for encoder, begin, mask in zip(self.encoders, begins.unbind(1), masks.unbind(1), strict=True):
            in_line = (begin[:, None] + positions).clamp(max=src_tokens.shape[1] - 1)
            features = (src_features,) if isinstance(encoder, FeatureEncoder) else ()  # the first source is in place
            output = encoder(src_tokens.gather(1, in_line).masked_fill(~mask, PAD), mask, *features)
            states = output.states.masked_fill(~mask[..., None], 0)
            encoded.append(output._replace(states=_moved(states, positions - begin[:, None])))
        final = zip(self.state_projections, *(output.final for output in encoded if output.final), strict=True)
        return EncoderOutput(
            torch.cat([output.states for output in encoded], dim=-1),
            src_mask,
            tuple(_combine(projection, layers) for projection, *layers in final),
            sources=Sources(begins, torch.stack([output.mask for output in encoded], dim=1)),
        )


def find_sources(src_tokens: Tensor, src_mask: Tensor, count: int) -> Sources:
    """Finds the sources in each line; both arguments are ``[batch, src_len]``."""
    is_tag = (src_tokens == FIRST_TAG) & src_mask
    source = is_tag.cumsum(1) - is_tag.long()  # tags before each token
    length = src_mask.sum(1)
    begins, ends = [torch.zeros_like(length)], []
    for index in range(count - 1):
        ends.append((src_mask & (source <= index)).sum(1))
        begins.append(torch.minimum(ends[-1], length - 1))  # a source that the line lacks begins at EOS
    begin, end = torch.stack(begins, dim=1), torch.stack([*ends, length], dim=1)
    positions = torch.arange(src_tokens.shape[1], device=src_tokens.device)
    return Sources(begin, positions < (end - begin)[..., None])


def _moved(states: Tensor, places: Tensor) -> Tensor:
    """Gathers the states at the places ``[batch, len]``; 0 for a place outside the source."""
    inside = (places >= 0) & (places < states.shape[1])
    index = places.clamp(0, states.shape[1] - 1)[..., None].expand_as(states)
    return states.gather(1, index).masked_fill(~inside[..., None], 0)


def _combine(projection: nn.Module, layers: list[FinalState]) -> FinalState:
    h, *c = zip(*(layer.joined() for layer in layers), strict=True)
    return FinalState((torch.tanh(projection(torch.cat(h, dim=-1))), *(torch.stack(cell).sum(0) for cell in c)))


class MultiSourceDecoder(LuongDecoder):
    """A ``LuongDecoder`` with a separate attention to each source (section 3.4).

    h~_t = tanh(W_c [c_t^1; c_t^2; h_t]). The alignments are the mean over the attentions.

    Raises:
        ConfigError: the encoder has one source only, or its states or the attention's options do not fit.
    """

    attention: "MultiSourceAttention"

    def make_attention(self, encoder: EncoderDescription, attention: Callable[..., Attention]) -> Attention:
        if not encoder.source_dims:
            raise ConfigError(
                "model.decoder is a MultiSourceDecoder, which attends to several sources, but model.encoder reads one; "
                "set model.encoder to a MultiSourceEncoder, or model.decoder to a LuongDecoder"
            )
        each = [attention(self.hidden_dim, dim) for dim in encoder.source_dims]
        return MultiSourceAttention(each, encoder.source_dims)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state of a ``LuongDecoder``; each source starts at position 0, and the memory holds its place."""
        assert encoded.sources is not None
        begins, masks = encoded.sources
        positions = torch.arange(masks.shape[2], device=masks.device)
        parts = zip(encoded.states.split(self.attention.dims, dim=-1), begins.unbind(1), strict=True)
        moved = [_moved(states, positions + begin[:, None]) for states, begin in parts]
        state = super().init_state(encoded._replace(states=torch.cat(moved, dim=-1)))
        memory = state.memory
        return state._replace(memory=memory._replace(projected=(begins, masks, *memory.projected)))

    def _look(
        self, query: Tensor, memory: Memory, position: Tensor, states: tuple[Tensor, ...]
    ) -> tuple[Tensor, AttentionOutput]:
        return self.attention.look(query, memory, position, states)


class MultiSourceAttention(Attention):
    """An attention to each source, side by side."""

    def __init__(self, attentions: Sequence[Attention], dims: Sequence[int]) -> None:
        super().__init__()
        self.attentions, self.dims = nn.ModuleList(attentions), list(dims)
        self.num_states = sum(attention.num_states for attention in attentions)

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """The products with each source's annotations, source by source."""
        parts = zip(self._each(), states.split(self.dims, dim=-1), strict=True)
        return tuple(product for attention, part in parts for product in attention.project(part))

    def start(self, mask: Tensor) -> tuple[Tensor, ...]:
        """The first states of all attentions, source by source."""
        return tuple(tensor for attention in self._each() for tensor in attention.start(mask))

    def look(
        self, query: Tensor, memory: Memory, position: Tensor, states: tuple[Tensor, ...]
    ) -> tuple[Tensor, AttentionOutput]:
        """The contexts side by side, and the combined output of all attentions.

        The arguments are those of ``Attention.forward``; in ``memory`` the places of the sources precede the
        products.
        """
        begins, masks, *projected = memory.projected
        positions = torch.arange(memory.mask.shape[1], device=memory.mask.device)
        num_products, num_states = (len(tensors) // len(self.dims) for tensors in (projected, states))
        contexts, alignments, next_states = [], [], ()
        for index, (attention, annotations) in enumerate(
            zip(self._each(), memory.states.split(self.dims, dim=-1), strict=True)
        ):
            own = tuple(projected[index * num_products : (index + 1) * num_products])
            source = Memory(annotations, masks[:, index], own)
            attended = attention(query, source, position, states[index * num_states : (index + 1) * num_states])
            contexts.append(attended.weights @ annotations)
            in_source = (positions - begins[:, index, None])[:, None].expand_as(attended.alignments)
            alignments.append(attended.alignments.gather(2, in_source.clamp(min=0)) * (in_source >= 0))
            next_states += attended.state
        mean = torch.stack(alignments).mean(0)
        return torch.cat(contexts, dim=-1), AttentionOutput(mean, mean, next_states)

    def _each(self) -> list[Attention]:
        return cast(list[Attention], list(self.attentions))
