"""Solutions of 05_luong_attention.ipynb."""

import numpy as np


def softmax(x):
    exp = np.exp(x - x.max())
    return exp / exp.sum()


def luong_general(h_t, h_s, W_a):
    return softmax(h_s @ W_a.T @ h_t)


def local_weights(scores, p_t, half_window):
    s = np.arange(len(scores))
    inside = abs(s - p_t) <= half_window
    a_t = np.zeros(len(scores))
    a_t[inside] = softmax(scores[inside])
    sigma = half_window / 2
    return a_t * np.exp(-((s - p_t) ** 2) / (2 * sigma**2))


def attentional_state(c_t, h_t, W_c):
    return np.tanh(W_c @ np.concatenate([c_t, h_t]))
