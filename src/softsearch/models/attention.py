"""Attention. Beams lie on the query axis, so that what belongs to a sentence is never copied for its hypotheses."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def masked_softmax(energies: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where ``mask`` is True, 0 elsewhere; each row has at least one True."""
    return energies.masked_fill(~mask, torch.finfo(energies.dtype).min).softmax(-1)


class AdditiveAttention(nn.Module):
    """Bahdanau et al. 2015, appendix A.1.2: e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j), alpha_i = softmax(e_i).

    Args:
        query_dim: width of the decoder's state s.
        memory_dim: width of the annotations h.
        dim: width of the hidden layer.
    """

    def __init__(self, query_dim: int, memory_dim: int, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.memory = nn.Linear(memory_dim, dim)
        self.energy = nn.Parameter(torch.empty(dim))
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.memory.weight)
        nn.init.zeros_(self.memory.bias)
        nn.init.uniform_(self.energy, -(dim**-0.5), dim**-0.5)

    def project(self, states: Tensor) -> Tensor:
        """U_a h_j of all annotations, once for each sentence: ``[sentences, src_len, dim]``."""
        projected: Tensor = self.memory(states)
        return projected

    def forward(self, query: Tensor, states: Tensor, projected: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Looks into the annotations.

        Args:
            query: s_{i-1}, ``[rows, query_dim]``, rows = sentences * beams.
            states: ``[sentences, src_len, memory_dim]``.
            projected: what :meth:`project` made of them.
            mask: ``[sentences, src_len]``.

        Returns:
            The context c_i ``[rows, memory_dim]`` and the alignments alpha_i ``[rows, src_len]``.
        """
        sentences = mask.shape[0]
        q = self.query(query).unflatten(0, (sentences, -1))  # [sentences, beams, dim]
        hidden = torch.tanh(q[:, :, None] + projected[:, None])  # [sentences, beams, src_len, dim]
        alignments = masked_softmax(hidden @ self.energy, mask[:, None])  # [sentences, beams, src_len]
        return (alignments @ states).flatten(0, 1), alignments.flatten(0, 1)


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    Keys and values are computed apart from the queries, so that a decoder can keep them.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key_value = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)
        for weight in (self.query.weight, *self.key_value.weight.data.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.query.bias, self.key_value.bias, self.out.bias):
            nn.init.zeros_(bias)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """``[batch, len, d_model]`` -> keys and values, ``[batch, heads, len, d_model / heads]`` each."""
        keys, values = self.key_value(memory).chunk(2, dim=-1)
        return self._heads(keys), self._heads(values)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Attends from ``x`` ``[batch, len, d_model]``.

        ``mask`` broadcasts to ``[batch, heads, len, keys]``; True = may be seen.
        """
        q = self._heads(self.query(x))
        if x.is_cuda:
            heads = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask, is_causal=causal)
        else:  # the fused CPU kernel's backward pass takes several times as long as these two products
            if causal:
                mask = torch.ones(q.shape[2], keys.shape[2], dtype=torch.bool, device=x.device).tril()
            energies = q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5
            heads = (energies.softmax(-1) if mask is None else masked_softmax(energies, mask)) @ values
        out: Tensor = self.out(heads.transpose(1, 2).flatten(-2))
        return out

    def with_weights(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same, written out, and the weights averaged over the heads ``[batch, len, keys]``."""
        q = self._heads(self.query(x))
        weights = masked_softmax(q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5, mask)
        out: Tensor = self.out((weights @ values).transpose(1, 2).flatten(-2))
        return out, weights.mean(1)

    def _heads(self, x: Tensor) -> Tensor:
        """``[batch, len, d_model]`` -> ``[batch, heads, len, d_model / heads]``."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
