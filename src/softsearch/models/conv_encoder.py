"""A convolutional sentence model (Kalchbrenner & Blunsom 2013, "Recurrent Continuous Translation Models", EMNLP)."""

import math
from collections.abc import Sequence
from typing import Annotated, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import InputError
from softsearch.models.interface import Encoder, EncoderDescription, EncoderOutput, FinalState, LayerShape
from softsearch.models.layers import Dropout
from softsearch.ranges import Range, Rate

Number = TypeVar("Number", int, Tensor)
_NGRAM_WIDTHS = (2, 3)
Longest = Annotated[int, Range(8, 2**20)]  # tokens of a sentence; a bundle's limit is at least the minimum


class ConvolutionalEncoder(Encoder):
    """The convolutional sentence model CSM (section 3): a sentence shrinks to one vector, layer by layer.

    E_1 has a column for each word, and E_{i+1} = tanh(K^{i+1} * E_i): each row is convolved with its own kernel, i + 1
    columns wide, which removes i columns. When m > 1 columns are left and the next kernel is wider, tanh(L^m * E) joins
    them into one. The last column is csm(e). The paper's sigma is tanh here.

    All layers are as wide as the embeddings. ``max_src_len``, the longest sentence with EOS, decides how many kernels
    there are. Dropout applies to the embeddings and to the vector.
    """

    def __init__(self, *, embedding: nn.Embedding, max_src_len: Longest = 128, dropout: Rate = 0.0) -> None:
        super().__init__()
        dim = embedding.embedding_dim
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        self.max_src_len: int = max_src_len
        self.description = EncoderDescription(dim, (LayerShape(dim),), max_src_len)
        # K^2 to K^n remove n(n - 1)/2 columns, and L^n joins n more; n is the smallest that suffices.
        self.widths = range(2, math.ceil((math.sqrt(8 * max_src_len + 1) - 1) / 2) + 1)
        self.kernels = packed_kernels(dim, self.widths)  # K^2, K^3, ...
        self.last_kernels = packed_kernels(dim, self.widths)  # L^2, L^3, ...

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes each sentence as one vector, the final state; the states are the embeddings.

        Raises:
            InputError: a sentence is longer than ``max_src_len``.
        """
        lengths = src_mask.sum(1)
        _check_length(lengths, src_tokens.shape[1], self.max_src_len)
        # While exporting, the number of layers must not depend on the input.
        exporting, src_len = torch.compiler.is_exporting(), src_tokens.shape[1]
        words = self.dropout(self.embedding(src_tokens))
        widths = [w for w in self.widths if exporting or triangle(w) < src_len]
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
        limits = torch.tensor([triangle(width) for width in widths]).to(lengths.device, non_blocking=True)
        layer = (lengths[:, None] > limits).sum(1)  # the last column of each sentence
        left = torch.stack(layers, dim=1)[torch.arange(batch, device=layer.device), layer]
        return left, lengths - triangle(layer + 1)

    def _join(self, left: Tensor, num_left: Tensor) -> Tensor:
        """Applies to each sentence the L^m for its number of columns; returns csm(e), ``[batch, dim]``."""
        position = torch.arange(left.shape[-1], device=left.device)
        real = position < num_left[:, None]
        begin = triangle(num_left) - 1  # where L^m begins among its neighbours
        index = (begin[:, None] + position).clamp(0, self.last_kernels.shape[1] - 1)
        kernels = (self.last_kernels[:, index] * real).transpose(0, 1)  # [batch, dim, n]
        joined = torch.tanh((left * kernels).sum(-1))
        return torch.where(num_left[:, None] == 1, left[..., 0], joined)


class NgramEncoder(Encoder):
    """The convolutional n-gram model CGM (section 3.3): ``ConvolutionalEncoder`` up to the layer of 4-grams.

    E_1 has a column for each word, E_2 = tanh(K^2 * E_1), cgm(e, 4) = tanh(K^3 * E_2). The paper's sigma is tanh here.

    A state is the 4-gram that begins at its token. The last three extend past the sentence's end into zeros; the paper
    has no such 4-grams, and ``span`` tells decoders about them. ``max_src_len``, with EOS, is for decoders that need a
    limit. Dropout applies to the embeddings and to the 4-grams.
    """

    def __init__(self, *, embedding: nn.Embedding, max_src_len: Longest = 128, dropout: Rate = 0.0) -> None:
        super().__init__()
        dim = embedding.embedding_dim
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        self.description = EncoderDescription(dim, max_src_len=max_src_len, span=1 + 1 + 2)
        self.max_src_len: int = max_src_len
        self.kernels = packed_kernels(dim, _NGRAM_WIDTHS)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes each token as the 4-gram that begins there.

        Raises:
            InputError: a sentence is longer than ``max_src_len``.
        """
        _check_length(src_mask.sum(1), src_tokens.shape[1], self.max_src_len)
        columns = self.dropout(self.embedding(src_tokens)).transpose(1, 2) * src_mask[:, None]
        for width, kernel in zip(_NGRAM_WIDTHS, self.kernels.split(list(_NGRAM_WIDTHS), dim=1), strict=True):
            padded = functional.pad(columns, (0, width - 1))
            columns = torch.tanh(functional.conv1d(padded, kernel[:, None], groups=len(kernel)))
        return EncoderOutput(self.dropout(columns.transpose(1, 2)), src_mask, ())


def packed_kernels(dim: int, widths: Sequence[int]) -> nn.Parameter:
    """Kernels of these widths side by side, ``[dim, sum(widths)]``, so that unused ones have a gradient too."""
    kernels = nn.Parameter(torch.empty(dim, sum(widths)))
    for kernel in kernels.data.split(list(widths), dim=1):
        nn.init.normal_(kernel, std=kernel.shape[1] ** -0.5)
    return kernels


def triangle(width: Number) -> Number:
    """Columns that kernels of widths 2 to ``width`` remove together: 1 + 2 + ... + (width - 1)."""
    return width * (width - 1) // 2


def _check_length(lengths: Tensor, src_len: int, max_src_len: int) -> None:
    if torch.compiler.is_exporting() or src_len <= max_src_len or (longest := int(lengths.max())) <= max_src_len:
        return
    raise InputError(
        f"a source sentence has {longest} tokens, EOS included, expected at most {max_src_len}, where the convolutions "
        "end; leave it out (batching.max_length), split it, or train with a larger model.encoder.max_src_len"
    )
