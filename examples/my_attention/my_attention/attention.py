"""An attention by the angle between the decoder's state and the annotations."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models import Attention, Memory
from softsearch.ranges import Positive


class MyAttention(Attention):
    """Graves, Wayne & Danihelka 2014 (arXiv:1410.5401), equations 5 and 6: e_ij = beta cos(W s, h_j).

    beta, the key strength, is learned and begins with ``strength``.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, strength: Positive = 5.0) -> None:
        super().__init__()
        self.key_projection = nn.Linear(query_dim, memory_dim, bias=False)  # W
        self.strength = nn.Parameter(torch.tensor(float(strength)))  # beta

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """h_j / |h_j|, once for a sentence: ``[sentences, positions, memory_dim]``."""
        return (functional.normalize(states, dim=-1),)

    def energies(self, query: Tensor, memory: Memory, state: tuple[Tensor, ...]) -> Tensor:
        """e_ij ``[sentences, queries, positions]``, from s ``[sentences, queries, query_dim]``."""
        key = functional.normalize(self.key_projection(query), dim=-1)
        return self.strength * key @ memory.projected[0].transpose(1, 2)
