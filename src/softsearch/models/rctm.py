"""Recurrent language models on a representation of the source (Kalchbrenner & Blunsom 2013, EMNLP, section 3)."""

import math
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.cells import ElmanCell
from softsearch.models.conv_encoder import packed_kernels, triangle
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import xavier
from softsearch.models.loop_weights import one_gradient_per_matrix
from softsearch.ranges import Range, Rate, Size

Ratio = Annotated[float, Range(0.5, 4)]


class RCTMDecoder(Decoder):
    """The target side of RCTM I (section 3.2): the summary of the source is added in every step.

    s = S csm(e), h_1 = tanh(I v(f_1) + s), h_{i+1} = tanh(R h_i + I v(f_{i+1}) + s), o_{i+1} = O h_i; the paper's sigma
    is tanh here, and h_0 is zero. csm(e) is the final state of the encoder's last layer, its directions side by side.

    h has ``hidden_dim`` units. Dropout applies to the embeddings and before the output layer.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self, *, embeddings: Embeddings, encoder: EncoderDescription, hidden_dim: Size, dropout: Rate = 0.0
    ) -> None:
        super().__init__(embeddings, dropout)
        self.summary_projection = nn.Linear(self._summary_dim(encoder), hidden_dim, bias=False)  # S
        self.cell = ElmanCell(embeddings.dim, hidden_dim)  # I, R and a bias
        self.output_projection = embeddings.make_output(hidden_dim)
        xavier(self.summary_projection)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """S csm(e) once for all steps, and h_0 = 0."""
        h = self.summary_projection.weight.new_zeros(encoded.mask.shape[0], self.cell.hidden_dim)
        return DecoderState.initial(encoded, (h,), (self.summary_projection(self._summary(encoded)),))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        cache, states = state.cache, []
        position = torch.arange(tgt_tokens.shape[1], device=tgt_tokens.device).expand_as(tgt_tokens)
        with one_gradient_per_matrix():
            for x in self._inputs(tgt_tokens, position, state.memory).unbind(1):
                cache = self.cell(x, cache)
                states.append(cache[0])
        return self.dropout(torch.stack(states, dim=1))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        sentences = state.memory.mask.shape[0]
        read, position = (t.unflatten(0, (sentences, -1)) for t in (tokens, state.position))  # [sentences, beams]
        cache = self.cell(self._inputs(read, position, state.memory).flatten(0, 1), state.cache)
        return StepOutput(self.output_projection(self.dropout(cache[0])), None, state.next(cache))

    def _summary_dim(self, encoder: EncoderDescription) -> int:
        return encoder.top_layer().joined_dim

    def _summary(self, encoded: EncoderOutput) -> Tensor:
        """The summary that S multiplies, ``[sentences, ..., dim]``."""
        return encoded.final[-1].joined()[0]

    def _inputs(self, tokens: Tensor, position: Tensor, memory: Memory) -> Tensor:
        """I v(f) + s for a sentence's tokens or its beams, ``[sentences, any, hidden_dim]``."""
        return self.cell.input_projection(self.dropout(self.embedding(tokens))) + self._read(memory, position)

    def _read(self, memory: Memory, position: Tensor) -> Tensor:
        """Computes s at positions ``[sentences, any]``: ``[sentences, any, hidden_dim]``, any = 1 if all are equal."""
        return memory.projected[0][:, None]


class RCTM2Decoder(RCTMDecoder):
    """The target side of RCTM II (section 3.4): n-grams of the source, unfolded to a column for each target position.

    F^g_j = tanh(T E^g_j) for the columns of E^g = cgm(e, 4); F = icgm(F^g, m), a column for each of m target words;
    h_1 = tanh(I v(f_1) + S F_1), h_{i+1} = tanh(R h_i + I v(f_{i+1}) + S F_{i+1}), o_{i+1} = O h_i. The paper's sigma
    is tanh here, h_0 is zero, and f_1 is BOS. h has ``hidden_dim`` units. Dropout is as in ``RCTMDecoder``.

    icgm is the n-gram model upside down. Where K^i removes i - 1 columns, J^i adds as many: each column writes to i
    neighbours, through tanh. The layers of a pyramid over m words have m - 1, m - 3, m - 6, ... columns; M^r extends
    the c columns of F^g to the smallest of these layers that has at least c, adding r - 1 columns, and J^i to J^2 go
    down from there. So M is to J what L is to K in the sentence model; the paper says that there are kernels J and M,
    not how they are used.

    The paper has P(f|e) = P(f|e, m) P(m|e), where m is the true length and P(m|e) a Poisson distribution. Here the true
    length is unknown until the translation ends: m is ``length_ratio`` times the source's length, rounded up, EOS
    counted on both sides, and at least c. Only EOS ends a translation; words after the m-th read the last column.

    Raises:
        ConfigError: the encoder has no n-grams.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        hidden_dim: Size,
        length_ratio: Ratio = 1.0,
        dropout: Rate = 0.0,
    ) -> None:
        if encoder.span == 1 or encoder.max_src_len is None:
            raise ConfigError(
                "model.decoder (RCTM II) unfolds n-grams of the source, but model.encoder has none; "
                "use the encoder of model=kalchbrenner2013_rctm2, or another decoder"
            )
        super().__init__(embeddings=embeddings, encoder=encoder, hidden_dim=hidden_dim, dropout=dropout)
        dim = encoder.output_dim
        self.translation = xavier(nn.Linear(dim, dim, bias=False))  # T
        num_columns = [max(1, length - encoder.span + 1) for length in range(encoder.max_src_len + 1)]  # c
        # By source length: the expected number of words, and how many more columns they need than F^g has.
        self.num_words = [max(c, math.ceil(length_ratio * length)) for length, c in enumerate(num_columns)]  # m
        self.missing = [m - c for m, c in zip(self.num_words, num_columns, strict=True)]
        self.widths = range(2, _last_width(max(self.missing)) + 1)
        self.kernels = packed_kernels(dim, self.widths)  # J^2, J^3, ...
        self.first_kernels = packed_kernels(dim, self.widths)  # M^2, M^3, ...

    def _summary_dim(self, encoder: EncoderDescription) -> int:
        return encoder.output_dim

    def _summary(self, encoded: EncoderOutput) -> Tensor:
        """F, with the m-th column of each sentence repeated after it."""
        lengths = encoded.mask.sum(1)
        num_words, missing = (
            torch.tensor(values).to(lengths.device, non_blocking=True)[lengths]
            for values in (self.num_words, self.missing)
        )
        real = torch.arange(encoded.states.shape[1], device=lengths.device) < (num_words - missing)[:, None]
        columns = (torch.tanh(self.translation(encoded.states)) * real[..., None]).transpose(1, 2)
        # While exporting, the number of layers must not depend on the input.
        most = len(self.missing) if torch.compiler.is_exporting() else encoded.states.shape[1] + 1
        columns = self._unfold(columns, missing, _last_width(max(self.missing[:most]))).transpose(1, 2)
        last = torch.minimum(torch.arange(columns.shape[1], device=lengths.device), num_words[:, None] - 1)
        return columns[torch.arange(columns.shape[0], device=lengths.device)[:, None], last]

    def _unfold(self, columns: Tensor, missing: Tensor, last_width: int) -> Tensor:
        """Adds ``missing`` columns after the real ones of each sentence, before its zeros, ``[batch, dim, any]``."""
        widths = self.widths[: last_width - 1]
        limits = torch.tensor([triangle(width) for width in widths]).to(missing.device, non_blocking=True)
        layer = (missing[:, None] >= limits).sum(1) + 1  # i, the width of the first J
        columns = self._first(columns, missing - triangle(layer), last_width)
        kernels = self.kernels.split(list(self.widths), dim=1)
        for width, kernel in reversed(list(zip(widths, kernels, strict=False))):
            padded = functional.pad(columns, (width - 1, width - 1))
            wider = torch.tanh(functional.conv1d(padded, kernel.flip(1)[:, None], groups=len(kernel)))
            columns = torch.where((layer >= width)[:, None, None], wider, padded[..., width - 1 :])
        return columns

    def _first(self, columns: Tensor, added: Tensor, last_width: int) -> Tensor:
        """Applies to each sentence the M for its number of columns, if any."""
        offset = torch.arange(last_width, device=added.device)
        begin = triangle(added + 1) - 1  # where M^(added + 1) begins among its neighbours
        index = (begin[:, None] + offset).clamp(0, self.first_kernels.shape[1] - 1)
        kernels = self.first_kernels[:, index] * (offset <= added[:, None])  # [dim, batch, last_width]
        n = last_width - 1
        shifted = [functional.pad(columns, (j, n - j)) for j in range(last_width)]
        products = [kernels[..., j].T[..., None] * x for j, x in enumerate(shifted)]
        wider = torch.tanh(sum(products[1:], products[0]))
        return torch.where((added > 0)[:, None, None], wider, shifted[0])

    def _read(self, memory: Memory, position: Tensor) -> Tensor:
        columns = memory.projected[0]
        sentences = torch.arange(position.shape[0], device=position.device)
        return columns[sentences[:, None], position.clamp(max=columns.shape[1] - 1)]


def _last_width(missing: int) -> int:
    """The widest of the kernels of widths 2, 3, ... that together add this number of columns."""
    width = 1
    while triangle(width + 1) <= missing:
        width += 1
    return width
