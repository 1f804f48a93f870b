"""Solutions of 07_subwords.ipynb."""

import math
from collections import Counter
from itertools import pairwise


def most_frequent_pair(words):
    counts = Counter()
    for symbols, count in words.items():
        for pair in pairwise(symbols):
            counts[pair] += count
    most = max(counts.values())
    return min(pair for pair, count in counts.items() if count == most)


def merge_pair(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


def best_segmentation(word, log_probs):
    best, start_of = [0.0] + [-math.inf] * len(word), [0] * (len(word) + 1)
    for end in range(1, len(word) + 1):
        for start in range(end):
            score = best[start] + log_probs.get(word[start:end], -math.inf)
            if score > best[end]:
                best[end], start_of[end] = score, start
    pieces, end = [], len(word)
    while end:
        pieces.insert(0, word[start_of[end] : end])
        end = start_of[end]
    return pieces
