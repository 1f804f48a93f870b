"""One step of any recurrent cell, in NumPy."""

import numpy as np

from tests.contract.transcriptions.equations import (
    Array,
    Options,
    State,
    Weights,
    elman,
    gru_after,
    gru_before,
    input_forget,
    lstm,
)
from tests.contract.transcriptions.layer_norm import normalised_cell


def cell(w: Weights, options: Options, x: Array, state: State) -> State:
    """One step of the cell that the options name; ``x`` is W x + b.

    Deep transitions: Miceli Barone et al. 2017, section 2.3.1, where the further ones read the state alone.
    """
    state = transition(w, options, x, state, reads=True)
    for k in range(options.get("transition_depth", 1) - 1):
        of_transition = w.at(f"transitions.{k}")
        state = transition(of_transition, options, of_transition["input_bias"], state, reads=False)
    return state


def transition(w: Weights, options: Options, x: Array, state: State, *, reads: bool) -> State:
    """One transition of a step."""
    if options.get("layer_norm"):
        return normalised_cell(w, options, x, state, reads=reads)
    if options["cell"] == "rnn":
        return (elman(w, x, *state),)
    if options["cell"] == "lstm":
        return lstm(w, x, *state)
    if options["cell"] == "input_forget":
        return (input_forget(w, x, *state),)
    gru = gru_before if options.get("reset", "before") == "before" else gru_after
    return (gru(w, x, *state),)


def zeros(w: Weights, options: Options) -> State:
    """The state before the first token."""
    hidden = (w["recurrent_gate_weight"] if options["cell"] == "gru" else w["recurrent_weight"]).shape[0]
    return (np.zeros(hidden),) * (2 if options["cell"] == "lstm" else 1)
