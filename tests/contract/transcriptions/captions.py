"""Captions from feature vectors (Xu et al. 2015), each by itself: from vectors to logits."""

from collections.abc import Sequence

import numpy as np

from tests.contract.models import feature_table
from tests.contract.transcriptions.equations import Array, Options, Weights, additive_attention, dropped, lstm, sigmoid
from tests.contract.transcriptions.recurrent import Encoded


def annotations(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """Section 3.1.1: a_1, ..., a_L, which stand for all tokens but EOS, if there are any."""
    del w
    table = feature_table(options["feature_dim"])
    return Encoded([table[token] for token in ids[:-1] or ids], [])


def show_attend_tell(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Section 3.1.2, equations 1 to 7, with the soft attention and the gate of section 4.2."""
    mean = np.mean(encoded.annotations, axis=0)
    h, c = np.split(np.tanh(w.affine("initial_state_projection", mean)), 2)  # f_init,h and f_init,c
    logits = []
    for token in ids:
        y = dropped(options, w["embedding.weight"][token])
        z, _ = additive_attention(w.at("attention"), {}, h, encoded.annotations, None)
        z = sigmoid(w.affine("gate_projection", h)) * z  # beta_t
        h, c = lstm(w.at("cell"), w.affine("cell.input_projection", y) + w.product("cell_context_projection", z), h, c)
        deep = y + w.affine("readout_projections.state", h) + w.product("readout_projections.context", z)
        logits.append(w.affine("output_projection", dropped(options, deep)))
    return logits
