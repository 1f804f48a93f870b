"""Solutions of 04_rnnsearch.ipynb."""

import numpy as np


def additive_energies(s, h, W_a, U_a, v_a):
    return np.array([v_a @ np.tanh(W_a @ s + U_a @ h_j) for h_j in h])


def masked_softmax(energies, mask):
    energies = np.where(mask, energies, -np.inf)
    weights = np.exp(energies - energies.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def alignment_error_rate(predicted, sure, possible):
    hits = sum(len(a & s) + len(a & p) for a, s, p in zip(predicted, sure, possible, strict=True))
    size = sum(len(a) + len(s) for a, s in zip(predicted, sure, strict=True))
    return 1 - hits / size
