"""Solutions of 08_search.ipynb."""

import numpy as np


def beam_step(totals, log_probs, beam):
    every = (totals[:, None] + log_probs).ravel()
    best = np.argsort(-every)[:beam]
    parents, tokens = np.divmod(best, log_probs.shape[1])
    return list(parents), list(tokens), list(every[best])


def length_norm(length, alpha):
    return (5 + length) ** alpha / (5 + 1) ** alpha


def nucleus(probs, top_p):
    order = np.argsort(-probs)
    before = np.cumsum(probs[order]) - probs[order]  # of the tokens that are more probable
    kept = np.zeros(len(probs))
    inside = order[before < top_p]
    kept[inside] = probs[inside]
    return kept / kept.sum()
