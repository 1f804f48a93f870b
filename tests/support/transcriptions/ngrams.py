"""RCTM II of Kalchbrenner & Blunsom 2013, sections 3.3 and 3.4, one sentence at a time."""

import math
from collections.abc import Sequence

import numpy as np

from tests.support.transcriptions.equations import Array, Options, Weights, dropped, elman
from tests.support.transcriptions.recurrent import Encoded, convolution


def encode(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """The CGM, cgm(e, 4), over a sentence that three zeros follow, so that each word begins a 4-gram."""
    words = [dropped(options, w["embedding.weight"][token]) for token in ids]
    matrix = np.array([*words, *[np.zeros_like(words[0])] * 3]).T
    for begin, width in ((0, 2), (2, 3)):  # K^2, K^3
        matrix = np.tanh(convolution(w["kernels"][:, begin : begin + width], matrix))
    return Encoded([dropped(options, gram) for gram in matrix.T], [])


def unfolded(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """The RCTM II, section 3.4."""
    length = len(encoded.annotations)  # k, EOS included
    grams = encoded.annotations[: max(1, length - 3)]  # those that end in the sentence
    columns = [np.tanh(w.product("translation", gram)) for gram in grams]  # F^g
    m = max(len(columns), math.ceil(options["length_ratio"] * length))
    columns = icgm(w, columns, m)
    h, logits = np.zeros(len(w["summary_projection.weight"])), []
    for position, token in enumerate(ids):
        s = w.product("summary_projection", columns[min(position, m - 1)])
        h = elman(
            w.at("cell"), w.affine("cell.input_projection", dropped(options, w["embedding.weight"][token])) + s, h
        )
        logits.append(w.affine("output_projection", dropped(options, h)))
    return logits


def icgm(w: Weights, columns: list[Array], m: int) -> list[Array]:
    """M^r to the layer of the pyramid over m words that has as many columns or more, then J^i to J^2."""
    layer, size = 1, m
    while size - layer >= len(columns):
        size, layer = size - layer, layer + 1
    added = size - len(columns)
    if added:
        columns = inverse(kernel(w["first_kernels"], added + 1), columns)
    for width in range(layer, 1, -1):
        columns = inverse(kernel(w["kernels"], width), columns)
    assert len(columns) == m
    return columns


def kernel(packed: Array, width: int) -> Array:
    """One of the kernels of widths 2, 3, ... that lie side by side."""
    begin = sum(range(2, width))
    return packed[:, begin : begin + width]


def inverse(weights: Array, columns: Sequence[Array]) -> list[Array]:
    """Every column adds to as many columns as the kernel is wide."""
    width = weights.shape[1]
    wider = [np.zeros_like(columns[0]) for _ in range(len(columns) + width - 1)]
    for position, column in enumerate(columns):
        for j in range(width):
            wider[position + j] = wider[position + j] + weights[:, j] * column
    return [np.tanh(column) for column in wider]
