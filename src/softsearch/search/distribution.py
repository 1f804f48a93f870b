"""All of a model's next-token probabilities at once, where the best few are not enough."""

import numpy as np
from numpy.typing import NDArray

from softsearch.search.interface import State, StepFunction


def full_log_probs(
    step_fn: StepFunction, tokens: NDArray[np.int64], state: State
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, State]:
    """One step over the whole vocabulary.

    Args:
        step_fn: the model.
        tokens: what each row reads, ``[rows]``.
        state: where the rows stand.

    Returns:
        Natural log probabilities ``[rows, vocab_size]`` by token id (-inf for what a shortlist forbids), the
        alignments ``[rows, src_len]`` if the model has any, and the next state.
    """
    candidates, state = step_fn.step(tokens, state, step_fn.vocab_size)
    log_probs = np.full((len(tokens), step_fn.vocab_size), -np.inf, dtype=np.float32)
    np.put_along_axis(log_probs, candidates.tokens, candidates.log_probs, axis=1)
    return log_probs, candidates.alignments, state
