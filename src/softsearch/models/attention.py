"""Attention mechanisms. Beams lie on the query axis, so that a sentence's memory is never copied per hypothesis."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.interface import Memory
from softsearch.models.layers import NormedLinear, xavier

Score = Literal["dot", "general", "concat", "location"]
Window = Literal["global", "local-m", "local-p"]
AttentionKind = Literal["content", "location", "hybrid"]


def masked_softmax(energies: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where ``mask`` is True, 0 elsewhere; each row has at least one True."""
    energies = energies.masked_fill(~mask, torch.finfo(energies.dtype).min)
    many = energies.requires_grad and energies.device.type == "cpu" and energies.shape[-2] > 1
    if many and not torch.compiler.is_compiling() and energies.shape[-1] < 16:
        return _SoftmaxOfShortRows.apply(energies)
    return energies.softmax(-1)


class _SoftmaxOfShortRows(torch.autograd.Function):
    """PyTorch's CPU kernel takes 15 ns for a number in rows of less than 16, and 1 ns in longer ones; this takes 2."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        y = (wide - wide.amax(-1, keepdim=True)).exp_()
        y /= y.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        ctx.dtype = x.dtype
        return y if torch.is_autocast_enabled("cpu") else y.to(x.dtype)  # as autocast does

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        d_x = d_y * y
        return d_x.addcmul_(y, d_x.sum(-1, keepdim=True), value=-1).to(ctx.dtype)


class AdditiveAttention(nn.Module):
    """Bahdanau et al. 2015, appendix A.1.2: e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j), alpha_i = softmax(e_i).

    That is attention by ``content``, alpha_i = Attend(s_{i-1}, h). By ``location`` it is Attend(s_{i-1}, alpha_{i-1}),
    and ``hybrid`` attention reads all three (Chorowski et al. 2015, arXiv:1506.07503, section 2.1; Luong 2016, "Neural
    machine translation"). Both read the alignments of the step before through the convolutional features of section
    2.2, f_i = F * alpha_{i-1}: location, e_ij = v_a' tanh(W_a s_{i-1} + U f_ij + b); hybrid,
    e_ij = v_a' tanh(W_a s_{i-1} + U_a h_j + U f_ij + b). alpha_0 has all its mass on the first position, and there are
    zeros beyond both ends.

    The decoder's state s has ``query_dim`` units, the annotations h have ``memory_dim``, the hidden layer ``dim``, f_ij
    ``location_filters``; a filter reads ``location_half_width`` positions on each side of j. The paper has 10 filters
    and 100 positions, of speech. With ``layer_norm`` both products are normalised: LN(W_a s_{i-1}) + LN(U_a h_j + b).
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        dim: int,
        *,
        kind: AttentionKind = "content",
        location_filters: int = 10,
        location_half_width: int = 5,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        linear = NormedLinear if layer_norm else nn.Linear
        self.reads_content, self.reads_alignments = kind != "location", kind != "content"
        self.query_projection = linear(query_dim, dim, bias=False)  # W_a
        if self.reads_content:
            self.memory_projection = linear(memory_dim, dim)  # U_a, b
        for layer in self.content_layers():
            xavier(layer)
        self.energy_weight = _vector(dim)  # v_a
        if self.reads_alignments:
            width = 2 * location_half_width + 1
            self.location_filters = nn.Conv1d(1, location_filters, width, padding=location_half_width, bias=False)  # F
            self.location_projection = xavier(nn.Linear(location_filters, dim, bias=not self.reads_content))  # U

    def content_layers(self) -> list[nn.Linear]:
        """W_a, and U_a if any."""
        return [self.query_projection, *([self.memory_projection] if self.reads_content else [])]

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """U_a h_j of all annotations, once for each sentence: ``[sentences, src_len, dim]``."""
        return (self.memory_projection(states),) if self.reads_content else ()

    def start(self, mask: Tensor) -> tuple[Tensor, ...]:
        """alpha_0 ``[sentences, src_len]``, if the first step reads it; ``mask`` is that of the annotations."""
        if not self.reads_alignments:
            return ()
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        return (first.to(self.energy_weight.dtype).expand(mask.shape),)

    def forward(self, query: Tensor, memory: Memory, before: tuple[Tensor, ...] = ()) -> tuple[Tensor, Tensor]:
        """Attends from s_{i-1} ``[rows, query_dim]``, rows = sentences * beams.

        ``memory`` holds the :meth:`project` of its states; ``before`` is alpha_{i-1} ``[rows, src_len]``, at first that
        of :meth:`start`, or nothing, as there. Returns the context c_i ``[rows, memory_dim]`` and the alignments
        alpha_i ``[rows, src_len]``.
        """
        energies = self.hidden(query, memory, before) @ self.energy_weight
        alignments = masked_softmax(energies, memory.mask[:, None])  # [sentences, beams, src_len]
        return (alignments @ memory.states).flatten(0, 1), alignments.flatten(0, 1)

    def hidden(self, query: Tensor, memory: Memory, before: tuple[Tensor, ...]) -> Tensor:
        """What v_a weights, ``[sentences, beams, src_len, dim]``."""
        sentences = memory.mask.shape[0]
        total = self.query_projection(query).unflatten(0, (sentences, -1))[:, :, None]  # [sentences, beams, 1, dim]
        if self.reads_content:
            total = total + memory.projected[0][:, None]
        for alignments in before:
            features = self.location_filters(alignments[:, None])  # [rows, location_filters, src_len]
            total = total + self.location_projection(features.transpose(1, 2)).unflatten(0, (sentences, -1))
        return torch.tanh(total)


class LuongAttention(nn.Module):
    """Luong, Pham & Manning 2015 (arXiv:1508.04025, section 3): a_t = softmax of scores, c_t = sum a_t(s) h_s.

    Scores (section 3.1): ``dot`` h_t' h_s; ``general`` h_t' W_a h_s; ``concat`` v_a' tanh(W_a [h_t; h_s]);
    ``location`` W_a h_t, with a row of W_a for each position (equation 8).

    Windows (section 3.2): ``global``, all of the source; ``local-m``, the D positions on each side of p_t = t, or of
    the last word where the source is shorter; ``local-p``, those around p_t = S sigmoid(v_p' tanh(W_p h_t)) (equation
    9), S being the source's length, where a_t is multiplied by exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2 (equation
    10). Positions count from 0.

    h_t has ``query_dim`` units, h_s ``memory_dim``. D is ``half_window``, the paper's is 10. ``location`` has weights
    for ``location_length`` positions; words beyond them get none.

    Raises:
        ConfigError: ``dot`` with unequal widths, or ``location`` with a local window.
    """

    def __init__(
        self, query_dim: int, memory_dim: int, *, score: Score, window: Window, half_window: int, location_length: int
    ) -> None:
        super().__init__()
        if score == "dot" and query_dim != memory_dim:
            raise ConfigError(
                f"model.decoder.score=dot compares states of {query_dim} units with annotations of {memory_dim}, "
                "expected equal widths; change a hidden_dim or set model.decoder.score=general"
            )
        if score == "location" and window != "global":
            raise ConfigError(
                f"model.decoder.score=location with model.decoder.window={window}: its weights belong to positions of "
                "the whole source; set model.decoder.window=global or another score"
            )
        self.score, self.window = score, window
        self.half_window, self.location_length = half_window, location_length
        if score == "general":
            self.memory_projection = xavier(nn.Linear(memory_dim, query_dim, bias=False))
        elif score == "concat":  # W_a in two halves, so that the one of the annotations is used once for all steps
            self.query_projection = xavier(nn.Linear(query_dim, query_dim, bias=False))
            self.memory_projection = xavier(nn.Linear(memory_dim, query_dim, bias=False))
            self.energy_weight = _vector(query_dim)  # v_a
        elif score == "location":
            self.location_projection = xavier(nn.Linear(query_dim, location_length, bias=False))
        if window == "local-p":
            self.centre_projection = xavier(nn.Linear(query_dim, query_dim, bias=False))  # W_p
            self.centre_weight = _vector(query_dim)  # v_p

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """The part of the scores that depends on the annotations alone, once for each sentence."""
        return (self.memory_projection(states),) if self.score in ("general", "concat") else ()

    def forward(self, query: Tensor, memory: Memory, position: Tensor) -> tuple[Tensor, Tensor]:
        """Attends from h_t ``[sentences, queries, query_dim]``, queries being beams or steps.

        ``memory`` holds the :meth:`project` of its states, ``position`` t of each query ``[sentences, queries]``.
        Returns the contexts ``[sentences, queries, memory_dim]`` and the alignments ``[sentences, queries, src_len]``.
        With ``local-p`` the context is the paper's, whose weights sum to less than 1; the alignments are the same
        weights divided by their sum.
        """
        positions = torch.arange(memory.mask.shape[1], device=memory.mask.device)
        mask = memory.mask[:, None]  # [sentences, 1, src_len]
        if self.score == "location":
            mask = mask & (positions < self.location_length)
        scores = self._scores(query, memory, positions)
        if self.window == "global":
            alignments = masked_softmax(scores, mask)
            return alignments @ memory.states, alignments
        distance = positions - self._centre(query, memory.mask, position)[..., None]  # [sentences, queries, src_len]
        weights = masked_softmax(scores, mask & (distance.abs() <= self.half_window))
        if self.window == "local-p":
            weights = weights * torch.exp(-2 * (distance / self.half_window) ** 2)
        return weights @ memory.states, weights / weights.sum(-1, keepdim=True)

    def _scores(self, query: Tensor, memory: Memory, positions: Tensor) -> Tensor:
        """``[sentences, queries, src_len]``."""
        if self.score == "location":
            scores: Tensor = self.location_projection(query)  # [sentences, queries, location_length]
            return scores[..., positions.clamp(max=self.location_length - 1)]
        keys = memory.states if self.score == "dot" else memory.projected[0]
        if self.score == "concat":  # [sentences, queries, src_len, query_dim]
            return torch.tanh(self.query_projection(query)[:, :, None] + keys[:, None]) @ self.energy_weight
        return query @ keys.transpose(1, 2)

    def _centre(self, query: Tensor, mask: Tensor, position: Tensor) -> Tensor:
        """p_t, ``[sentences, queries]``, in full precision under autocast too."""
        length = mask.sum(1, keepdim=True)
        if self.window == "local-m":
            return torch.minimum(position, length - 1)
        share = torch.tanh(self.centre_projection(query)) @ self.centre_weight
        return length * torch.sigmoid(share.to(self.centre_weight.dtype))


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2).

    Keys and values are computed separately from the queries, so that a decoder can cache them.
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

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """``[batch, len, d_model]`` -> keys and values, ``[batch, heads, len, d_model / heads]`` each."""
        keys, values = self.key_value_projection(memory).chunk(2, dim=-1)
        return self._heads(keys), self._heads(values)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Attends from ``x`` ``[batch, len, d_model]``.

        ``mask`` broadcasts to ``[batch, heads, len, keys]``; True = visible.
        """
        if x.device.type != "cpu":
            q = self._heads(self.query_projection(x))
            heads = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask, is_causal=causal)
            return self.output_projection(heads.transpose(1, 2).flatten(-2))
        # The fused CPU kernel's backward pass takes several times as long as the two products of with_weights.
        if causal:
            mask = torch.ones(x.shape[1], keys.shape[2], dtype=torch.bool, device=x.device).tril()
        return self.with_weights(x, keys, values, mask)[0]

    def with_weights(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same, written out, and the weights ``[batch, heads, len, keys]``."""
        q = self._heads(self.query_projection(x))
        energies = q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5
        weights = energies.softmax(-1) if mask is None else masked_softmax(energies, mask)
        return self.output_projection((weights @ values).transpose(1, 2).flatten(-2)), weights

    def _heads(self, x: Tensor) -> Tensor:
        """``[batch, len, d_model]`` -> ``[batch, heads, len, d_model / heads]``."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def _vector(dim: int) -> nn.Parameter:
    return nn.Parameter(nn.init.uniform_(torch.empty(dim), -(dim**-0.5), dim**-0.5))
