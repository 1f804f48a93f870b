"""Readouts, a part of a decoder: the features t that its output layer reads."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from softsearch.models.layers import Projections, maxout, xavier
from softsearch.ranges import Size


class Readout(nn.Module):
    """A readout t = f(U s + V E y + C c) of state, embedding and context; subclasses define f.

    It is built with the widths of embedding, state and context. A custom readout may be any module with ``output_dim``,
    the two attributes below and ``forward``; in YAML it is ``readout: {_target_: mypackage.MyReadout, _partial_:
    true}``.
    """

    output_dim: int  # of t
    option: str = "readout.dim"  # the decoder's option that sets output_dim, for messages
    # The linear layer that only the context goes through; an exported graph applies it to the annotations, once for
    # each sentence. None: the context is read in another way.
    context_layer: ClassVar[str | None] = "projections.context"

    def __init__(self, dim: int, layer_norm: bool, **input_dims: int) -> None:
        super().__init__()
        self.projections = Projections(dim, layer_norm=layer_norm, **input_dims)
        for layer in self.projections.layers():
            xavier(layer)

    def forward(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        """Computes t for one step or for all, ``[..., output_dim]``."""
        raise NotImplementedError


class Maxout(Readout):
    """t = maxout(U_o s + V_o E y + C_o c) (Bahdanau et al. 2015, appendix A.2.2), with ``dim`` units."""

    def __init__(self, embedding_dim: int, state_dim: int, memory_dim: int, *, dim: Size) -> None:
        super().__init__(2 * dim, False, embedding=embedding_dim, state=state_dim, context=memory_dim)
        self.output_dim = dim

    def forward(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        return maxout(self.projections(embedding=embedded, state=s, context=context))


class Tanh(Readout):
    """t = tanh(W_t1 s + W_t2 E y + W_t3 c) (Sennrich et al. 2017, section 2), with ``dim`` units.

    With ``layer_norm`` each product is normalised separately, as in Nematus with layer normalisation.
    """

    def __init__(
        self, embedding_dim: int, state_dim: int, memory_dim: int, *, dim: Size, layer_norm: bool = False
    ) -> None:
        super().__init__(dim, layer_norm, embedding=embedding_dim, state=state_dim, context=memory_dim)
        self.output_dim = dim

    def forward(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(self.projections(embedding=embedded, state=s, context=context))


class EmbeddingSum(Readout):
    """t = E y + L_h s + L_z c (Xu et al. 2015, section 3.1.2), as wide as the embeddings."""

    option = "embeddings.dim"

    def __init__(self, embedding_dim: int, state_dim: int, memory_dim: int) -> None:
        super().__init__(embedding_dim, False, state=state_dim, context=memory_dim)
        self.output_dim = embedding_dim

    def forward(self, embedded: Tensor, s: Tensor, context: Tensor) -> Tensor:
        return embedded + self.projections(state=s, context=context)
