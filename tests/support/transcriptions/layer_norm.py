"""Cells with layer normalisation, in NumPy: Ba et al. 2016 (arXiv:1607.06450), supplementary material."""

import numpy as np

from tests.support.transcriptions.equations import Array, Options, State, Weights, norm, sigmoid


def normalised_cell(
    w: Weights, options: Options, x: Array, state: State, read: Array, inside: Array | float, *, reads: bool
) -> State:
    """One step; ``x`` is W x + b of all blocks, or what stands in its place in a cell that reads no input.

    The products with the state read ``read``.
    """
    h = state[0]
    if options["cell"] == "gru":
        return (gru(w, options, x, h, read, inside, reads=reads),)
    x = norm(w.at("input_norms.0"), x) if reads else x
    a = x + norm(w.at("state_norms.0"), w["recurrent_weight"].T @ read)
    if options["cell"] == "rnn":
        return (np.tanh(a),)
    if options["cell"] == "input_forget":
        i, f, g = np.split(a, 3)
        return (sigmoid(f) * h + sigmoid(i) * np.tanh(g),)
    i, f, o, g = np.split(a, 4)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(norm(w.at("memory_norm"), c)), c


def gru(w: Weights, options: Options, x: Array, h: Array, read: Array, inside: Array | float, *, reads: bool) -> Array:
    """Gates and candidate have norms of their own; the reset gate acts outside of the norm where it acts after."""
    size = len(h)
    x_gates, x_candidate = x[: 2 * size], x[2 * size :]
    if reads:
        x_gates, x_candidate = norm(w.at("input_norms.0"), x_gates), norm(w.at("input_norms.1"), x_candidate)
    z, r = np.split(sigmoid(x_gates + norm(w.at("state_norms.0"), w["recurrent_gate_weight"].T @ read)), 2)
    U = w["recurrent_candidate_weight"].T
    if options.get("reset", "before") == "before":
        of_state = norm(w.at("state_norms.1"), U @ (r * read))
    else:
        of_state = r * norm(w.at("state_norms.1"), U @ read + w["recurrent_candidate_bias"] + inside)
    return np.asarray((1 - z) * h + z * np.tanh(x_candidate + of_state))
