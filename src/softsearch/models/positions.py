"""Positions of tokens in a Transformer: encodings added to its embeddings, or rotations of its queries and keys."""

from typing import Literal

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError, InputError

Kind = Literal["sinusoidal", "sinusoidal_halves", "sinusoidal_tensor2tensor", "learned", "rotary"]
_BASE = 10000.0  # of all wavelengths


class Positions(nn.Module):
    """Position encoding of a Transformer: added to its embeddings, or rotating its queries and keys.

    Args:
        kind: an added encoding, which is ``sinusoidal``, another layout of ``sinusoids``, or ``learned``, a row for
            each position (Gehring et al. 2017, arXiv:1705.03122, section 3.1); or ``rotary``, which adds nothing but
            rotates queries and keys of self-attention by angles that grow with the position (Su et al. 2021,
            arXiv:2104.09864, equations 14, 15 and 34).
        d_model: width of the embeddings.
        num_heads: heads of self-attention.
        max_positions: rows of ``learned``: the longest sentence that can be read, EOS included; a longer translation
            reads the last row from there on.
        scale: whether embeddings are multiplied by sqrt(d_model) (Vaswani et al. 2017, section 3.4).

    Raises:
        ConfigError: the width does not divide into heads of even width.
    """

    def __init__(self, kind: Kind, d_model: int, num_heads: int, max_positions: int, *, scale: bool) -> None:
        super().__init__()
        if d_model % (2 * num_heads):
            raise ConfigError(
                f"model.embeddings.dim={d_model} with num_heads={num_heads}: expected an even width for each head; "
                "change one of them"
            )
        self.kind, self.scale, self.head_dim = kind, d_model**0.5 if scale else 1.0, d_model // num_heads
        self.max_len = max_positions if kind == "learned" else None
        self.table = nn.Embedding(max_positions, d_model) if kind == "learned" else None
        if self.table is not None:
            nn.init.normal_(self.table.weight, std=0.1)  # Gehring et al. 2017, section 3.5

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        """Scales embeddings ``[..., d_model]`` and adds encodings; ``position`` broadcasts to their leading axes."""
        if self.scale != 1:
            x = x * self.scale
        return x if self.kind == "rotary" else x + self.encodings(position, x.shape[-1]).to(x.dtype)

    def encodings(self, position: Tensor, d_model: int) -> Tensor:
        """The encodings to add, ``[...]`` int -> ``[..., d_model]``; ``rotary`` has none."""
        if self.table is None:
            return sinusoids(position, d_model, self.kind)
        rows: Tensor = self.table(position.clamp(max=self.table.num_embeddings - 1))
        return rows

    def angles(self, position: Tensor) -> Tensor | None:
        """The angles for ``rotate``, ``[..., d_model / heads / 2]``; None if nothing is rotated."""
        return position[..., None].float() * _frequencies(position, self.head_dim) if self.kind == "rotary" else None

    def check_length(self, length: int, side: str) -> None:
        """Refuses a source or target that is longer than ``learned`` positions.

        Raises:
            InputError: the sentence is longer.
        """
        if self.max_len is not None and not torch.compiler.is_exporting() and length > self.max_len:
            raise InputError(
                f"a {side} has {length} tokens, EOS included, expected at most {self.max_len}, where the learned "
                "positions end; leave it out (batching.max_length), split it, or train with a larger max_positions"
            )


def sinusoids(position: Tensor, dim: int, kind: Kind = "sinusoidal") -> Tensor:
    """Position encodings, ``[...]`` int -> ``[..., dim]``, computed for any length.

    ``sinusoidal``: PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos(the same) (Vaswani et al. 2017, section
    3.5). ``sinusoidal_halves``: all sines before all cosines, as in Hugging Face's MarianMT.
    ``sinusoidal_tensor2tensor``: the halves with pos / 10000^(i / (dim/2 - 1)), as in Tensor2Tensor (the authors'
    code), Marian and fairseq.
    """
    if kind == "sinusoidal_tensor2tensor":
        half = dim // 2
        steps = torch.arange(half, device=position.device, dtype=torch.float32) / max(half - 1, 1)
        frequencies = _BASE**-steps
    else:
        frequencies = _frequencies(position, dim)
    angle = position[..., None].float() * frequencies  # [..., dim / 2]
    if kind == "sinusoidal":
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
    return torch.cat((angle.sin(), angle.cos()), dim=-1)


def rotate(x: Tensor, angles: Tensor | None) -> Tensor:
    """Rotates pairs of neighbours in ``x`` ``[batch, heads, len, dim]`` by ``angles`` ``[(batch,) len, dim / 2]``."""
    if angles is None:
        return x
    turn = torch.polar(torch.ones_like(angles), angles).unsqueeze(-3)
    exact = x.to(torch.promote_types(x.dtype, torch.float32))  # complex numbers have no bfloat16
    return torch.view_as_real(torch.view_as_complex(exact.unflatten(-1, (-1, 2))) * turn).flatten(-2).to(x.dtype)


def _frequencies(position: Tensor, dim: int) -> Tensor:
    """10000^(-2i/dim) for i < dim / 2."""
    return _BASE ** (-torch.arange(0, dim, 2, device=position.device, dtype=torch.float32) / dim)
