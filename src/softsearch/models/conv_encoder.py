"""A convolutional sentence model (Kalchbrenner & Blunsom 2013, "Recurrent Continuous Translation Models", EMNLP)."""

import math
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError, InputError
from softsearch.models.interface import Encoder, EncoderDescription, EncoderOutput, FinalState, LayerShape
from softsearch.models.layers import Dropout
from softsearch.ranges import Rate, Size

Number = TypeVar("Number", int, Tensor)


class ConvolutionalEncoder(Encoder):
    """The convolutional sentence model CSM (section 3): a sentence shrinks to one vector, layer by layer.

    E_1 has a column for each word, and E_{i+1} = tanh(K^{i+1} * E_i): each row is convolved with its own kernel, i + 1
    columns wide, which takes away i columns. When m > 1 columns are left and the next kernel is wider, tanh(L^m * E)
    makes them one. The last column is csm(e). The paper's sigma is tanh here.

    All K are one parameter and all L another, so that kernels that no sentence of a batch needs have a gradient too.

    All layers are as wide as the embeddings. ``max_src_len``, the longest sentence with EOS, decides how many kernels
    there are. Dropout is on the embeddings and on the vector.

    Raises:
        ConfigError: ``max_src_len`` is less than 8.
    """

    def __init__(self, *, embedding: nn.Embedding, max_src_len: Size = 128, dropout: Rate = 0.0) -> None:
        super().__init__()
        if max_src_len < 8:
            raise ConfigError(f"model.encoder.max_src_len is {max_src_len}, expected at least 8; change it")
        dim = embedding.embedding_dim
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        self.max_src_len: int = max_src_len
        self.description = EncoderDescription(dim, (LayerShape(dim),), max_src_len)
        # K^2 to K^n take away n(n - 1)/2 columns, and L^n joins n more: n is the least that is enough.
        self.widths = range(2, math.ceil((math.sqrt(8 * max_src_len + 1) - 1) / 2) + 1)
        self.kernels = nn.Parameter(torch.empty(dim, sum(self.widths)))  # K^2, K^3, ... side by side
        self.last_kernels = nn.Parameter(torch.empty(dim, sum(self.widths)))  # L^2, L^3, ...
        for packed in (self.kernels, self.last_kernels):
            for kernel in packed.data.split(list(self.widths), dim=1):
                nn.init.normal_(kernel, std=kernel.shape[1] ** -0.5)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """See :class:`Encoder`; the states are the embeddings, and the final state is the vector of each sentence.

        Raises:
            InputError: a sentence is longer than ``max_src_len``.
        """
        lengths = src_mask.sum(1)
        # While exporting, the number of layers must not depend on the input.
        exporting, src_len = torch.compiler.is_exporting(), src_tokens.shape[1]
        if not exporting and src_len > self.max_src_len and (longest := int(lengths.max())) > self.max_src_len:
            raise InputError(
                f"a source sentence has {longest} tokens, EOS included, expected at most {self.max_src_len}, where the "
                "convolutions end; leave it out (batching.max_length), split it, or train with a larger "
                "model.encoder.max_src_len"
            )
        words = self.dropout(self.embedding(src_tokens))
        widths = [w for w in self.widths if exporting or _shrunk(w) < src_len]
        vector = self._join(*self._shrink(words.transpose(1, 2), lengths, widths))
        return EncoderOutput(words, src_mask, (FinalState((self.dropout(vector),)),))

    def _shrink(self, columns: Tensor, lengths: Tensor, widths: list[int]) -> tuple[Tensor, Tensor]:
        """Applies the kernels of these widths, from K^2 on, to ``columns`` ``[batch, dim, src_len]``.

        Returns the columns that each sentence has left when the next kernel is wider, ``[batch, dim, n]``, and how many
        of them are real, ``[batch]``; the others are padding.
        """
        (batch, _, src_len), n = columns.shape, self.widths[-1]
        layers = []
        for width, kernel in zip(widths, self.kernels.split(list(self.widths), dim=1), strict=False):
            padded = functional.pad(columns, (0, n))
            layers.append(padded[..., :n])
            convolved = functional.conv1d(padded[..., : src_len + width - 1], kernel[:, None], groups=len(kernel))
            columns = torch.tanh(convolved)  # [batch, dim, src_len]
        layers.append(functional.pad(columns, (0, n))[..., :n])
        limits = torch.tensor([_shrunk(width) for width in widths], device=lengths.device)
        layer = (lengths[:, None] > limits).sum(1)  # the last one of each sentence
        left = torch.stack(layers, dim=1)[torch.arange(batch, device=layer.device), layer]
        return left, lengths - _shrunk(layer + 1)

    def _join(self, left: Tensor, num_left: Tensor) -> Tensor:
        """Applies to each sentence the L^m of its number of columns: csm(e), ``[batch, dim]``."""
        position = torch.arange(left.shape[-1], device=left.device)
        real = position < num_left[:, None]
        begin = _shrunk(num_left) - 1  # of L^m among its neighbours
        index = (begin[:, None] + position).clamp(0, self.last_kernels.shape[1] - 1)
        kernels = (self.last_kernels[:, index] * real).transpose(0, 1)  # [batch, dim, n]
        joined = torch.tanh((left * kernels).sum(-1))
        return torch.where(num_left[:, None] == 1, left[..., 0], joined)


def _shrunk(width: Number) -> Number:
    """How many columns K^2 to K^width take away, 1 + 2 + ...; also, how many L^1 to L^(width - 1) have."""
    return width * (width - 1) // 2
