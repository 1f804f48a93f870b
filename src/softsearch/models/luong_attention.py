"""The attention of Luong, Pham & Manning 2015 (arXiv:1508.04025, section 3): four scores, three windows."""

from typing import Literal

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import masked_softmax
from softsearch.models.interface import Memory

Score = Literal["dot", "general", "concat", "location"]
Window = Literal["global", "local-m", "local-p"]


class LuongAttention(nn.Module):
    """a_t = softmax of scores over a window of the source, c_t = sum_s a_t(s) h_s.

    Scores (section 3.1): ``dot`` h_t' h_s; ``general`` h_t' W_a h_s; ``concat`` v_a' tanh(W_a [h_t; h_s]);
    ``location`` W_a h_t, with a row of W_a for each position (equation 8).

    Windows (section 3.2): ``global``, all of the source; ``local-m``, the D positions on each side of p_t = t, or of
    the last word where the source is shorter; ``local-p``, those around p_t = S sigmoid(v_p' tanh(W_p h_t)) (equation
    9), S being the source's length, where a_t is multiplied by exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2 (equation
    10). Positions count from 0.

    Args:
        query_dim: width of the decoder's state h_t.
        memory_dim: width of the annotations h_s.
        score: how state and annotation are compared.
        window: where to look.
        half_window: D of the local windows; the paper's is 10.
        location_length: positions that ``location`` has weights for; words beyond them get none.

    Raises:
        ConfigError: ``dot`` with unequal widths, ``location`` with a local window, or a length below 1.
    """

    def __init__(
        self, query_dim: int, memory_dim: int, *, score: Score, window: Window, half_window: int, location_length: int
    ) -> None:
        super().__init__()
        _check(query_dim, memory_dim, score, window, {"half_window": half_window, "location_length": location_length})
        self.score, self.window = score, window
        self.half_window, self.location_length = half_window, location_length
        if score == "general":
            self.memory = _linear(memory_dim, query_dim)
        elif score == "concat":  # W_a in two halves, so that the one of the annotations is used once for all steps
            self.query = _linear(query_dim, query_dim)
            self.memory = _linear(memory_dim, query_dim)
            self.energy = _vector(query_dim)
        elif score == "location":
            self.query = _linear(query_dim, location_length)
        if window == "local-p":
            self.place = _linear(query_dim, query_dim)
            self.place_energy = _vector(query_dim)

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """What a score needs of the annotations, once for each sentence."""
        return (self.memory(states),) if self.score in ("general", "concat") else ()

    def forward(self, query: Tensor, memory: Memory, position: Tensor) -> tuple[Tensor, Tensor]:
        """Looks into the annotations.

        Args:
            query: h_t, ``[sentences, queries, query_dim]``; queries are beams, or steps.
            memory: with what :meth:`project` made of its states.
            position: t of each query, ``[sentences, queries]``.

        Returns:
            The contexts ``[sentences, queries, memory_dim]`` and the alignments ``[sentences, queries, src_len]``.
            With ``local-p`` the context is the paper's, whose weights sum to less than 1; the alignments are the same
            weights divided by their sum.
        """
        places = torch.arange(memory.mask.shape[1], device=memory.mask.device)
        seen = memory.mask[:, None]  # [sentences, 1, src_len]
        if self.score == "location":
            seen = seen & (places < self.location_length)
        scores = self._scores(query, memory, places)
        if self.window == "global":
            alignments = masked_softmax(scores, seen)
            return alignments @ memory.states, alignments
        distance = places - self._centre(query, memory.mask, position)[..., None]  # [sentences, queries, src_len]
        weights = masked_softmax(scores, seen & (distance.abs() <= self.half_window))
        if self.window == "local-p":
            weights = weights * torch.exp(-2 * (distance / self.half_window) ** 2)
        return weights @ memory.states, weights / weights.sum(-1, keepdim=True)

    def _scores(self, query: Tensor, memory: Memory, places: Tensor) -> Tensor:
        """``[sentences, queries, src_len]``."""
        if self.score == "location":
            scores: Tensor = self.query(query)  # [sentences, queries, location_length]
            return scores[..., places.clamp(max=self.location_length - 1)]
        keys = memory.states if self.score == "dot" else memory.projected[0]
        if self.score == "concat":  # [sentences, queries, src_len, query_dim]
            return torch.tanh(self.query(query)[:, :, None] + keys[:, None]) @ self.energy
        return query @ keys.transpose(1, 2)

    def _centre(self, query: Tensor, mask: Tensor, position: Tensor) -> Tensor:
        """p_t, ``[sentences, queries]``, in full precision under autocast too."""
        length = mask.sum(1, keepdim=True)
        if self.window == "local-m":
            return torch.minimum(position, length - 1)
        share = torch.tanh(self.place(query)) @ self.place_energy
        return length * torch.sigmoid(share.to(self.place_energy.dtype))


def _check(query_dim: int, memory_dim: int, score: Score, window: Window, lengths: dict[str, int]) -> None:
    if score == "dot" and query_dim != memory_dim:
        raise ConfigError(
            f"model.decoder.score=dot compares states of {query_dim} units with annotations of {memory_dim}, expected "
            "equal widths; change a hidden_dim or set model.decoder.score=general"
        )
    if score == "location" and window != "global":
        raise ConfigError(
            f"model.decoder.score=location with model.decoder.window={window}: its weights belong to positions of "
            "the whole source; set model.decoder.window=global or another score"
        )
    for name, length in lengths.items():
        if length < 1:
            raise ConfigError(f"model.decoder.{name} is {length}, expected at least 1; change it")


def _linear(input_dim: int, output_dim: int) -> nn.Linear:
    linear = nn.Linear(input_dim, output_dim, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _vector(dim: int) -> nn.Parameter:
    return nn.Parameter(nn.init.uniform_(torch.empty(dim), -(dim**-0.5), dim**-0.5))
