"""Additive attention in an exported graph: what the decoder computes from the context comes out of it directly.

W c_i = W sum_j alpha_ij h_j = sum_j alpha_ij (W h_j): the products with the annotations are made once for a sentence,
instead of one with the context for each of its rows at each step.
"""

from typing import cast

import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention, masked_softmax
from softsearch.models.conditional_gru import ConditionalGRUDecoder
from softsearch.models.interface import Decoder, Memory
from softsearch.models.layers import NormedLinear
from softsearch.models.rnnsearch import AttentionalDecoder

_CELL = {True: "context_cell.input_projection", False: "cell_context_projection"}


def project_annotations(decoder: Decoder) -> None:
    """Rewrites an :class:`AttentionalDecoder` in place, so that it still computes the same; leaves others alone."""
    if not isinstance(decoder, AttentionalDecoder):
        return
    names = [_CELL[isinstance(decoder, ConditionalGRUDecoder)]]
    names += [name for name, _ in decoder.named_modules() if name.endswith("_projections.context")]
    layers = [cast(nn.Linear, decoder.get_submodule(name)) for name in names]
    decoder.set_submodule("attention", _ProjectedAttention(decoder.attention, layers))
    first = 0
    for name, layer in zip(names, layers, strict=True):
        columns = _Columns(first, first + layer.out_features)
        decoder.set_submodule(name, nn.Sequential(columns, layer.norm) if isinstance(layer, NormedLinear) else columns)
        first += layer.out_features


class _ProjectedAttention(nn.Module):
    """An :class:`AdditiveAttention` whose context is the outputs of ``readers``, side by side."""

    def __init__(self, original: AdditiveAttention, readers: list[nn.Linear]) -> None:
        super().__init__()
        self.original, self.reads_alignments = original, original.reads_alignments
        weight = torch.cat([reader.weight.data for reader in readers])
        self.value_projection = nn.Linear(weight.shape[1], weight.shape[0])
        self.value_projection.weight.data = weight
        # The alignments of a row add up to 1, and so do their shares of the bias.
        self.value_projection.bias.data = torch.cat(
            [dict(r.named_parameters()).get("bias", weight.new_zeros(r.out_features)).detach() for r in readers]
        )

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """See :meth:`AdditiveAttention.project`; and the values."""
        return (*self.original.project(states), self.value_projection(states))

    def start(self, mask: Tensor) -> tuple[Tensor, ...]:
        """See :meth:`AdditiveAttention.start`."""
        return self.original.start(mask)

    def forward(self, query: Tensor, memory: Memory, before: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """See :meth:`AdditiveAttention.forward`."""
        hidden = self.original.hidden(query, memory, before)
        # ONNX Runtime takes six times as long for the product of four dimensions with a vector.
        energies = (hidden.flatten(0, 2) @ self.original.energy_weight[:, None]).view(hidden.shape[:3])
        alignments = masked_softmax(energies, memory.mask[:, None])
        return (alignments @ memory.projected[-1]).flatten(0, 1), alignments.flatten(0, 1)


class _Columns(nn.Module):
    """Some columns of what :class:`_ProjectedAttention` returns."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__()
        self.first, self.end = first, end

    def forward(self, context: Tensor) -> Tensor:
        """``[rows, all]`` -> ``[rows, end - first]``."""
        return context[:, self.first : self.end]
