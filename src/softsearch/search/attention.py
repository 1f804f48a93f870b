"""Whether a model looks at the source at all, seen from outside."""

import numpy as np

from softsearch.search.interface import StepFunction
from softsearch.text.vocabulary import BOS, EOS, UNK

_FLAT = 1e-6


def has_attention(step_fn: StepFunction) -> bool:
    """Whether alignments mean something: a model without attention gives none, or the same weight to each token."""
    state = step_fn.start([[UNK, BOS, UNK, EOS]])
    candidates, _ = step_fn.step(np.array([BOS]), state, 1)
    return candidates.alignments is not None and float(np.ptp(candidates.alignments)) > _FLAT
