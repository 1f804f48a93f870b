"""Solutions of 01_language_models.ipynb."""

from collections import Counter

import numpy as np


def nearest_words(vectors, word, count):
    cosines = vectors @ vectors[word] / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vectors[word]))
    order = np.argsort(-cosines)
    return [int(other) for other in order if other != word][:count]


def continuation_probability(bigrams):
    different = set(bigrams)
    before = Counter(second for _, second in different)
    return {word: count / len(different) for word, count in before.items()}


def perplexity(log_probs):
    tokens = [p for sentence in log_probs for p in sentence]
    return np.exp(-sum(tokens) / len(tokens))
