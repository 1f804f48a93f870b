"""One step of any recurrent cell, in NumPy."""

import numpy as np

from tests.support.transcriptions.equations import (
    Array,
    Options,
    State,
    Weights,
    elman,
    fixed_mask,
    gru_after,
    gru_before,
    input_forget,
    lstm,
)
from tests.support.transcriptions.layer_norm import normalised_cell


def cell(w: Weights, options: Options, x: Array, state: State, inside: Array | float = 0.0) -> State:
    """One step of the cell that the options name; ``x`` is W x + b, ``inside`` what the reset gate of a GRU gates, too.

    Deep transitions: Miceli Barone et al. 2017, section 2.3.1, where the further ones read the state alone. Dropout of
    the state: one mask for each transition, the same at all steps (Gal & Ghahramani 2016, equations 5 to 7).
    """
    depth, hidden = options.get("transition_depth", 1), len(state[0])
    mask = fixed_mask(depth * hidden) if options.get("recurrent_dropout") else np.ones(depth * hidden)
    state = transition(w, options, x, state, mask[:hidden], inside, reads=True)
    for k in range(1, depth):
        of_transition, keep = w.at(f"transitions.{k - 1}"), mask[k * hidden : (k + 1) * hidden]
        state = transition(of_transition, options, of_transition["input_bias"], state, keep, reads=False)
    return state


def drop_state(options: Options, h: Array) -> Array:
    """What others read of h: with the mask of the first transition."""
    return h * fixed_mask(len(h)) if options.get("recurrent_dropout") else h


def drop_input(options: Options, state: State, x: Array) -> Array:
    """What a cell reads of x: one mask for all steps, which stands behind those of the state."""
    width = options.get("transition_depth", 1) * len(state[0])
    return x * fixed_mask(width + len(x))[width:] if options.get("recurrent_dropout") else x


def transition(
    w: Weights, options: Options, x: Array, state: State, keep: Array, inside: Array | float = 0.0, *, reads: bool
) -> State:
    """One transition of a step, whose products with h have h * ``keep`` in its place."""
    h, read = state[0], state[0] * keep
    if options.get("layer_norm"):
        return normalised_cell(w, options, x, state, read, inside, reads=reads)
    if options["cell"] == "rnn":
        return (elman(w, x, read),)
    if options["cell"] == "lstm":
        return lstm(w, x, read, state[1])
    if options["cell"] == "input_forget":
        return (input_forget(w, x, h, read),)
    if options.get("reset", "before") == "before":
        return (gru_before(w, x, h, read),)
    return (gru_after(w, x, h, read, inside),)


def zeros(w: Weights, options: Options) -> State:
    """The state before the first token."""
    hidden = (w["recurrent_gate_weight"] if options["cell"] == "gru" else w["recurrent_weight"]).shape[0]
    return (np.zeros(hidden),) * (2 if options["cell"] == "lstm" else 1)
