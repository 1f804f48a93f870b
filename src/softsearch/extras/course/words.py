"""Exercises on words and subwords: notebooks 01 and 07."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from softsearch.extras.course.exercise import Arguments, Exercise, rng
from softsearch.search import PairScore

Pair = tuple[str, str]
Symbols = tuple[str, ...]


def nearest_words(vectors: NDArray[np.float64], word: int, count: int) -> list[int]:
    """Returns the ``count`` other rows of ``vectors`` with the greatest cosine to row ``word``, nearest first."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[word]
    cosines[word] = -np.inf
    nearest: list[int] = np.argsort(-cosines, kind="stable")[:count].tolist()
    return nearest


def continuation_probability(bigrams: Sequence[Pair]) -> dict[str, float]:
    """Returns the share of each word as the second word of distinct bigrams (Kneser & Ney 1995)."""
    different = Counter(word for _, word in dict.fromkeys(bigrams))
    return {word: count / different.total() for word, count in different.items()}


def perplexity(log_probs: Sequence[Sequence[float]]) -> float:
    """Returns exp of the mean -log p per token, from the natural log probabilities of each sentence's tokens."""
    from softsearch.evaluation import mean_nll

    return math.exp(mean_nll([PairScore(sum(tokens), tuple(tokens)) for tokens in log_probs]))


def most_frequent_pair(words: Mapping[Symbols, int]) -> Pair:
    """Returns the most frequent pair of neighbours, counted by word (Sennrich et al. 2016, algorithm 1).

    Among equally frequent pairs, it is the first in the order of strings.
    """
    counts: Counter[Pair] = Counter()
    for symbols, count in words.items():
        for pair in pairwise(symbols):
            counts[pair] += count
    return min(counts, key=lambda pair: (-counts[pair], pair))


def merge_pair(symbols: Symbols, pair: Pair) -> Symbols:
    """Merges every occurrence of the pair, from left to right, into one symbol."""
    merged: list[str] = []
    rest = list(symbols)
    while rest:
        size = 2 if tuple(rest[:2]) == pair else 1
        merged.append("".join(rest[:size]))
        del rest[:size]
    return tuple(merged)


def best_segmentation(word: str, log_probs: Mapping[str, float]) -> list[str]:
    """Returns the most probable segmentation under a unigram model (Kudo 2018, section 3.1, Viterbi)."""
    best: list[tuple[float, list[str]]] = [(0.0, [])]
    for end in range(1, len(word) + 1):
        options = [
            (best[start][0] + log_probs[word[start:end]], [*best[start][1], word[start:end]])
            for start in range(end)
            if word[start:end] in log_probs
        ]
        best.append(max(options, default=(-math.inf, [])))
    return best[-1][1]


def _vectors() -> list[Arguments]:
    vectors = rng().standard_normal((7, 4)) * np.arange(1, 8)[:, None]  # of different lengths
    return [{"vectors": vectors, "word": word, "count": count} for word, count in ((0, 3), (6, 1), (2, 6))]


def _bigrams() -> list[Arguments]:
    text = "san francisco is in california and san francisco is by the sea and the sea is cold"
    return [
        {"bigrams": bigrams} for bigrams in ([("a", "b")], list(pairwise(text.split())), list(pairwise("abcabdab")))
    ]


def _log_probs() -> list[Arguments]:
    return [
        {"log_probs": sentences}
        for sentences in ([[math.log(0.25)] * 4], [[-1.0], [-2.0, -3.0, -4.0]], [[-0.5, -0.1], [], [-7.0]])
    ]


_WORDS = {("l", "o", "w"): 5, ("l", "o", "w", "e", "r"): 2, ("n", "e", "w", "e", "s", "t"): 6, tuple("widest"): 3}


def _counted_words() -> list[Arguments]:
    merged = {("lo", "w"): 5, ("lo", "w", "e", "r"): 2}
    return [{"words": words} for words in (_WORDS, merged, {("b", "a"): 1, ("a", "b"): 1})]


def _merges() -> list[Arguments]:
    cases = (("newest", ("e", "s")), ("aaaaa", ("a", "a")), ("low", ("x", "y")), (("re", "s", "e", "s"), ("e", "s")))
    return [{"symbols": tuple(word), "pair": pair} for word, pair in cases]


def _unigrams() -> list[Arguments]:
    letters = {letter: math.log(0.02) for letter in sorted({*"unrelated"})}
    pieces = letters | {piece: math.log(p) for piece, p in (("un", 0.1), ("rel", 0.05), ("related", 0.04), ("ed", 0.2))}
    greedy = {
        "a": -3.0,
        "ab": -1.0,
        "abc": -2.0,
        "c": -4.0,
        "d": -4.0,
        "cd": -1.5,
    }  # longest piece first is not the best
    return [{"word": word, "log_probs": p} for word, p in (("unrelated", pieces), ("abcd", greedy), ("a", greedy))]


EXERCISES = {
    "nearest_words": Exercise(nearest_words, _vectors, 0),
    "continuation_probability": Exercise(continuation_probability, _bigrams),
    "perplexity": Exercise(perplexity, _log_probs),
    "most_frequent_pair": Exercise(most_frequent_pair, _counted_words, 0),
    "merge_pair": Exercise(merge_pair, _merges, 0),
    "best_segmentation": Exercise(best_segmentation, _unigrams, 0),
}
