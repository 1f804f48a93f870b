"""The attention of Luong, Pham & Manning 2015 (arXiv:1508.04025)."""

from typing import Literal

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import Attention, AttentionOutput, masked_softmax
from softsearch.models.interface import Memory
from softsearch.models.layers import random_vector, xavier
from softsearch.ranges import Size

Score = Literal["dot", "general", "concat", "location"]
Window = Literal["global", "local-m", "local-p"]


class LuongAttention(Attention):
    """Luong, Pham & Manning 2015, section 3: a_t = softmax of scores, c_t = sum a_t(s) h_s.

    Scores (section 3.1): ``dot`` h_t' h_s; ``general`` h_t' W_a h_s; ``concat`` v_a' tanh(W_a [h_t; h_s]);
    ``location`` W_a h_t, with a row of W_a for each position (equation 8).

    Windows (section 3.2): ``global``, all of the source; ``local-m``, the D positions on each side of p_t = t, or of
    the last word where the source is shorter; ``local-p``, those around p_t = S sigmoid(v_p' tanh(W_p h_t)) (equation
    9), where S is the source's length and a_t is multiplied by exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2 (equation
    10). Positions count from 0.

    h_t has ``query_dim`` units, h_s ``memory_dim``. D is ``half_window``, 10 in the paper. ``location`` has weights for
    ``location_length`` positions; words beyond them get none.

    Raises:
        ConfigError: ``dot`` with unequal widths, or ``location`` with a local window.
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        *,
        score: Score = "general",
        window: Window = "global",
        half_window: Size = 10,
        location_length: Size = 50,
    ) -> None:
        super().__init__()
        if score == "dot" and query_dim != memory_dim:
            raise ConfigError(
                f"model.decoder.attention.score=dot compares states of {query_dim} units with annotations of "
                f"{memory_dim}, expected equal widths; change a hidden_dim or set "
                "model.decoder.attention.score=general"
            )
        if score == "location" and window != "global":
            raise ConfigError(
                f"model.decoder.attention.score=location with model.decoder.attention.window={window}: its weights "
                "belong to positions of the whole source; set model.decoder.attention.window=global or another score"
            )
        self.score, self.window = score, window
        self.half_window, self.location_length = half_window, location_length
        if score == "general":
            self.memory_projection = xavier(nn.Linear(memory_dim, query_dim, bias=False))
        elif score == "concat":  # W_a in two halves; that of the annotations is used once for all steps
            self.query_projection = xavier(nn.Linear(query_dim, query_dim, bias=False))
            self.memory_projection = xavier(nn.Linear(memory_dim, query_dim, bias=False))
            self.energy_weight = random_vector(query_dim)  # v_a
        elif score == "location":
            self.location_projection = xavier(nn.Linear(query_dim, location_length, bias=False))
        if window == "local-p":
            self.centre_projection = xavier(nn.Linear(query_dim, query_dim, bias=False))  # W_p
            self.centre_weight = random_vector(query_dim)  # v_p

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """The part of the scores that depends only on the annotations, computed once per sentence."""
        return (self.memory_projection(states),) if self.score in ("general", "concat") else ()

    def forward(
        self, query: Tensor, memory: Memory, position: Tensor, state: tuple[Tensor, ...] = ()
    ) -> AttentionOutput:
        """Attends to the whole source or to a window of it.

        With ``local-p`` the weights are the paper's, which sum to less than 1; the alignments are the same divided by
        their sum.
        """
        positions = torch.arange(memory.mask.shape[1], device=memory.mask.device)
        mask = memory.mask[:, None]  # [sentences, 1, src_len]
        if self.score == "location":
            mask = mask & (positions < self.location_length)
        scores = self._scores(query, memory, positions)
        if self.window != "global":  # [sentences, queries, src_len]
            distance = positions - self._centre(query, memory.mask, position)[..., None]
            mask = mask & (distance.abs() <= self.half_window)
        weights = masked_softmax(scores, mask)
        if self.window != "local-p":
            return AttentionOutput(weights, weights)
        weights = weights * torch.exp(-2 * (distance / self.half_window) ** 2)
        return AttentionOutput(weights, weights / weights.sum(-1, keepdim=True))

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
