"""Solutions of 09_evaluation.ipynb."""

import math
from collections import Counter

import numpy as np


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu_precision(hypothesis, reference, n):
    ours = ngrams(hypothesis, n)
    return (ours & ngrams(reference, n)).total(), ours.total()


def brevity_penalty(hypothesis_length, reference_length):
    if hypothesis_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / hypothesis_length) if hypothesis_length else 0.0


def p_value(system, baseline, system_resamples, baseline_resamples):
    if system == baseline:
        return 1.0
    differences = np.abs(system_resamples - baseline_resamples)
    further = (differences - differences.mean() > abs(system - baseline)).sum()
    return (further + 1) / (len(differences) + 1)
