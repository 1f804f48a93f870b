"""Solutions of 03_encoder_decoder.ipynb."""

import numpy as np


def last_states(states, lengths):
    return np.stack([sentence[length - 1] for sentence, length in zip(states, lengths, strict=True)])


def maxout(x):
    return np.maximum(x[..., 0::2], x[..., 1::2])


def sentence_log_prob(logits, targets):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    of_targets = np.take_along_axis(log_probs, targets[:, :, None], axis=-1)[:, :, 0]
    return np.where(targets != 0, of_targets, 0).sum(axis=1)
