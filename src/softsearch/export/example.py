"""Tensors with which the graphs of a model are traced, and which of their axes vary."""

from typing import Any

import torch
from torch import Tensor
from torch.export import Dim

from softsearch.models.interface import EncoderDescription, Memory, Tensors
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.manifest import FEATURES
from softsearch.text.vocabulary import EOS, PAD

SENTENCES, BEAMS, PREVIOUS_BEAMS, SRC_LEN, POSITIONS, SLOTS = (
    Dim(name, min=1) for name in ("sentences", "beams", "previous_beams", "src_len", "positions", "slots")
)


class Example:
    """Tensors to trace with: no size is 1 and no two are equal, so that none is mistaken for a constant."""

    def __init__(self, model: Seq2Seq) -> None:
        sentences, positions, beams, previous, slots = 3, 7, 4, 5, 11
        described = model.encoder.description
        src_len = (positions - 1) * described.tokens_per_position + 1
        self.src_tokens = torch.full((sentences, src_len), EOS)
        self.src_tokens[0, -2:] = PAD
        self.src_mask = self.src_tokens != PAD
        self.source = {"src_tokens": self.src_tokens, "src_mask": self.src_mask}
        if described.feature_dim is not None:
            self.source[FEATURES] = torch.ones(sentences, src_len, described.feature_dim)
        with torch.no_grad():
            state, shorter = (
                model.encode(**{name: tensor[:, :length] for name, tensor in self.source.items()})
                for length in (src_len, src_len - described.tokens_per_position)
            )
        memory, shorter_axes = (memory_of(encoded.memory, described) for encoded in (state, shorter))
        self.memory = tuple(m.contiguous() for m in memory)
        self.memory_axes = tuple(
            _axes({0: SENTENCES}, src_len, *pair) for pair in zip(memory, shorter_axes, strict=True)
        )
        rows = {0: SENTENCES, 1: PREVIOUS_BEAMS}
        if state.slots:
            self.cache: Tensors = (torch.zeros(sentences, previous, slots),)  # bias of the slots
            self.cache_axes: tuple[dict[int, Any], ...] = (rows | {2: SLOTS},)
        else:
            cache, shorter_axes = (tuple(c[:, None] for c in encoded.cache) for encoded in (state, shorter))
            self.cache = tuple(c.expand(-1, previous, *c.shape[2:]).clone() for c in cache)
            self.cache_axes = tuple(_axes(rows, src_len, *pair) for pair in zip(cache, shorter_axes, strict=True))
        self.slots = tuple(s.new_zeros(*s.shape[:2], slots, s.shape[3]) for s in state.slots)
        self.memory_names, self.cache_names, self.slot_names = (
            [f"{kind}.{i}" for i in range(len(tensors))]
            for kind, tensors in (("memory", self.memory), ("cache", self.cache), ("slots", self.slots))
        )
        self.parents = torch.arange(beams).expand(sentences, beams).clone()


def memory_of(memory: Memory, encoder: EncoderDescription) -> Tensors:
    """Returns what the encoder passes to the steps, which already have the mask of the tokens."""
    own_mask = (memory.mask,) if encoder.has_own_mask else ()
    return (memory.states, *memory.projected, *own_mask)


def _axes(axes: dict[int, Any], src_len: int, tensor: Tensor, shorter_axes: Tensor) -> dict[int, Any]:
    """Returns the dynamic axes: those given, and those that are shorter for a shorter source."""
    sizes = enumerate(zip(tensor.shape, shorter_axes.shape, strict=True))
    source_axes = {
        axis: SRC_LEN if size == src_len else POSITIONS for axis, (size, shorter) in sizes if size != shorter
    }
    return axes | source_axes
