"""The bi-scale character decoder (Chung, Cho & Bengio 2016, arXiv:1603.06147), each sentence by itself."""

from collections.abc import Sequence

import numpy as np

from tests.support.transcriptions.equations import (
    Array,
    Options,
    Weights,
    additive_attention,
    dropped,
    sigmoid,
    transposed,
)
from tests.support.transcriptions.recurrent import Encoded


def decode(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Attention from e_y(y_{t-1}) and the slower layer, both layers, and a readout of both."""
    h1, h2 = np.split(np.tanh(w.affine("initial_state.projection", np.mean(encoded.annotations, axis=0))), 2)
    g1, g2 = np.zeros(len(h1)), np.zeros(len(h2))
    cell, logits = w.at("cell"), []
    for token in ids:
        y = dropped(options, w["embedding.weight"][token])
        c, _ = additive_attention(w.at("attention"), options, np.concatenate((y, h2)), encoded.annotations, None)
        of_h1, of_g1, of_h2, of_g2 = np.split(w.affine("cell_context_projection", c), 4)
        y_h1, y_g1 = np.split(cell.affine("input_projection", y), 2)
        stay, stay_gate = transposed(cell["faster_weight"], 2)
        again, again_gate = transposed(cell["restart_weight"], 2)
        going_on, reset = (1 - g1) * h1, g1 * h2
        h1 = np.tanh(y_h1 + of_h1 + stay @ going_on + again @ reset)
        g1 = sigmoid(y_g1 + of_g1 + stay_gate @ going_on + again_gate @ reset)
        slow, slow_gate = transposed(cell["slower_weight"], 2)
        chunk, chunk_gate = transposed(cell["chunk_weight"], 2)
        going_on, ended = (1 - g2) * h2, g1 * h1
        new = np.tanh(of_h2 + slow @ going_on + chunk @ ended)
        g2 = sigmoid(of_g2 + slow_gate @ going_on + chunk_gate @ ended)
        h2 = (1 - g1) * h2 + g1 * new
        t = np.tanh(
            w.product("readout.projections.state", np.concatenate((h1, h2)))
            + w.affine("readout.projections.embedding", y)
            + w.product("readout.projections.context", c)
        )
        logits.append(w.affine("output_projection", dropped(options, t)))
    return logits
