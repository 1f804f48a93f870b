"""Interpolated modified Kneser-Ney estimates from counts of n-grams (Kneser & Ney 1995; Chen & Goodman 1999)."""

import logging
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from softsearch.text.vocabulary import BOS, EOS

Sentences = Callable[[], Iterable[tuple[Tensor, Tensor]]]
_FALLBACK = (0.5, 1.0, 1.5)  # discounts where there are too few n-grams to estimate them, as in KenLM

log = logging.getLogger(__name__)


class NGrams(NamedTuple):
    """The n-grams of one order, sorted by context and word; contexts are the n-grams of the order below."""

    contexts: Tensor  # [ngrams] numbers of the first n - 1 words
    words: Tensor  # [ngrams] the last word
    discounted: Tensor  # [ngrams] u(w | h) = (a(hw) - D(a(hw))) / sum_v a(hv), float64
    backoffs: Tensor  # [contexts] gamma(h), the probability freed by the discounts; 1 if nothing follows h


class _Counts(NamedTuple):
    """The n-grams of one order with their counts."""

    vocab_size: int
    keys: Tensor  # [ngrams] context * vocab_size + word, rising
    suffixes: Tensor  # [ngrams] numbers of the last n - 1 words
    counts: Tensor  # [ngrams] in the text
    initial: Tensor  # [ngrams] bool, whether it begins with BOS

    @property
    def contexts(self) -> Tensor:
        return self.keys // self.vocab_size

    @property
    def words(self) -> Tensor:
        return self.keys % self.vocab_size


def kneser_ney(sentences: Sentences, *, order: int, vocab_size: int) -> tuple[Tensor, list[NGrams]]:
    """Estimates an n-gram model; memory grows with the distinct n-grams, not with the text.

    p(w | h) = u(w | h) + gamma(h) p(w | h'), where h' is h without its first word, down to p(w) = u(w) + gamma / V
    (Chen & Goodman 1999, section 3). The discount D is the order's D_1, D_2 or D_3+ for n-grams seen once, twice or
    more often, estimated from the numbers of n-grams seen one to four times. In the highest order a(g) is the count of
    g; below it, the number of different words before g (Kneser & Ney 1995), except that an n-gram that begins with BOS,
    which no word precedes, keeps its count (Heafield et al. 2013). BOS itself is never predicted; its probability is
    only gamma / V.

    Args:
        sentences: yields the text in parts, once for each order: the tokens of sentences, one after the other, without
            BOS and EOS, and their lengths ``[sentences]``.
        order: n.
        vocab_size: V.

    Returns:
        The probabilities of words ``[vocab_size]`` without context, and the n-grams of orders 2 to ``order``.
    """
    levels = _count(sentences, order, vocab_size)
    adjusted = [torch.bincount(levels[0].suffixes, minlength=vocab_size)]
    for level, above in pairwise(levels):
        distinct = torch.bincount(above.suffixes, minlength=level.keys.shape[0])
        adjusted.append(torch.where(level.initial, level.counts, distinct))
    adjusted.append(levels[-1].counts)
    words, (left_over,) = _discount(1, adjusted[0], torch.zeros_like(adjusted[0]), 1)
    return words + left_over / vocab_size, [
        NGrams(level.contexts, level.words, *_discount(number, a, level.contexts, below.shape[0]))
        for number, (level, (below, a)) in enumerate(zip(levels, pairwise(adjusted), strict=True), start=2)
    ]


def _count(sentences: Sentences, order: int, vocab_size: int) -> list[_Counts]:
    """Counts the n-grams of orders 2 to ``order``; those of order 1 are the words by their ids."""
    levels: list[_Counts] = []
    for length in range(2, order + 1):
        counted, waiting = [], 0
        for ids, lengths in sentences():
            counted.append(_count_some(ids, lengths, length, levels, vocab_size))
            waiting += len(counted[-1].keys)
            if waiting > len(counted[0].keys):  # so that each n-gram is merged a few times only
                counted, waiting = [_merge(counted)], 0
        levels.append(_merge(counted))
    return levels


def _count_some(ids: Tensor, lengths: Tensor, length: int, levels: list[_Counts], vocab_size: int) -> _Counts:
    """Counts the n-grams of one order in some sentences, given those of lower orders."""
    ends = (lengths + 2).cumsum(0)  # with BOS and EOS
    tokens = torch.full((int(ends[-1]),), -1)
    tokens[ends - lengths - 2], tokens[ends - 1] = BOS, EOS
    tokens[tokens == -1] = ids
    places = torch.arange(tokens.shape[0]) - (ends - lengths - 2).repeat_interleave(lengths + 2)  # in the sentence

    def find(numbers: Tensor, words: int) -> tuple[Tensor, Tensor]:
        at = (places >= words - 1).nonzero()[:, 0]
        return at, numbers[at - 1] * vocab_size + tokens[at]

    numbers = tokens  # of the n-grams that end at each token
    for words, level in enumerate(levels, start=2):
        at, keys = find(numbers, words)
        numbers = torch.full_like(tokens, -1).scatter_(0, at, torch.searchsorted(level.keys, keys))
    at, keys = find(numbers, length)
    unique, own, counts = keys.unique(return_inverse=True, return_counts=True)
    last = torch.empty_like(unique).scatter_(0, own, at)  # the token that ends one occurrence of each
    return _Counts(vocab_size, unique, numbers[last], counts, places[last] == length - 1)


def _merge(parts: list[_Counts]) -> _Counts:
    """Adds up counts of the same n-grams."""
    if len(parts) == 1:
        return parts[0]
    _, all_keys, suffixes, counts, initial = zip(*parts, strict=True)
    keys, own = torch.cat(all_keys).unique(return_inverse=True)
    total = torch.zeros_like(keys).index_add_(0, own, torch.cat(counts))
    places = torch.empty_like(keys).scatter_(0, own, torch.arange(len(own)))
    return _Counts(parts[0].vocab_size, keys, torch.cat(suffixes)[places], total, torch.cat(initial)[places])


def _discount(order: int, a: Tensor, contexts: Tensor, num_contexts: int) -> tuple[Tensor, Tensor]:
    """Computes u of each n-gram and gamma of each context from the counts ``a``."""
    discounts = torch.tensor([0.0, *_discounts(order, a)], dtype=torch.float64)[a.clamp(max=3)]
    total, left_over = (torch.bincount(contexts, weights=x, minlength=num_contexts) for x in (a.double(), discounts))
    backoffs = torch.where(total > 0, left_over / total.clamp(min=1), 1)
    return (a - discounts) / total.clamp(min=1)[contexts], backoffs


def _discounts(order: int, a: Tensor) -> tuple[float, ...]:
    """D_1, D_2 and D_3+ of an order: D_i = i - (i + 1) Y n_{i+1} / n_i, Y = n_1 / (n_1 + 2 n_2).

    As in KenLM, n_4 and the discounts may be 0.
    """
    n = torch.bincount(a.clamp(max=5), minlength=6).tolist()
    if all(n[1:4]):
        y = n[1] / (n[1] + 2 * n[2])
        found = tuple(i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3))
        if all(0 <= discount <= i for i, discount in enumerate(found, start=1)):
            return found
    log.info("too few %d-grams to estimate their discounts; using %g, %g and %g", order, *_FALLBACK)
    return _FALLBACK
