"""The character-level encoder of Lee, Cho & Hofmann 2017, section 4.1, one sentence at a time."""

from collections.abc import Sequence

import numpy as np

from tests.support.transcriptions.equations import Array, Options, Weights, dropped, sigmoid
from tests.support.transcriptions.recurrent import Encoded, Ends, run


def encode(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """Embeddings, convolutions, max-pooling with stride, highway layers, a GRU in both directions."""
    x = [dropped(options, w["embedding.weight"][token]) for token in ids]
    banks = [bank(w.at(f"convolutions.{index}"), index + 1, x) for index in range(len(options["filters"]))]
    y = [np.concatenate([of_width[t] for of_width in banks]) for t in range(len(x))]
    s = options["stride"]
    segments = [np.max(y[begin : begin + s], axis=0) for begin in range(0, len(y), s)]
    for layer in range(options["highway_layers"]):
        segments = [highway(w.at(f"highway.{layer}"), segment) for segment in segments]
    gru = {"cell": "gru", "reset": options["reset"]}
    forward, last = run(w.at("recurrence.forward_cell"), gru, segments)
    backward, first = run(w.at("recurrence.backward_cell"), gru, segments[::-1])
    annotations = [dropped(options, np.concatenate(pair)) for pair in zip(forward, backward[::-1], strict=True)]
    return Encoded(annotations, [Ends(last, first)])


def bank(w: Weights, width: int, x: Sequence[Array]) -> list[Array]:
    """The half convolution of one width: as many columns as there are characters, zeros around them."""
    columns = []
    for t in range(len(x)):
        column = w["bias"].copy()
        for j in range(width):
            position = t - width // 2 + j
            if 0 <= position < len(x):
                column += w["weight"][:, :, j] @ x[position]
        columns.append(np.maximum(column, 0))
    return columns


def highway(w: Weights, y: Array) -> Array:
    """g * relu(W_1 y + b_1) + (1 - g) * y with g = sigmoid(W_2 y + b_2)."""
    g = sigmoid(w.affine("gate", y))
    return np.asarray(g * np.maximum(w.affine("projection", y), 0) + (1 - g) * y)
