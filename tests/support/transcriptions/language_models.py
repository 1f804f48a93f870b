"""Language models, one sentence at a time."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np

from softsearch.testing.models import TGT_VOCAB, counted_text
from softsearch.text.vocabulary import BOS, EOS
from tests.support.transcriptions.equations import Array, Options, Weights, dropped
from tests.support.transcriptions.recurrent import Encoded


def feed_forward(w: Weights, options: Options, _: Encoded, tgt: Sequence[int]) -> list[Array]:
    """Bengio et al. 2003, section 2: y = b + W x + U tanh(d + H x), x = (C(w_{t-1}), ..., C(w_{t-n+1}))."""
    n, hidden = options["order"], w["hidden_projection.bias"].size
    C, b = w["embedding.weight"], w["output_projection.bias"]
    U, W = np.split(w["output_projection.weight"], [hidden], axis=1)
    logits = []
    for t in range(1, len(tgt) + 1):
        context = [tgt[t - i] if i <= t else BOS for i in range(1, n)]
        x = np.concatenate([dropped(options, C[word]) for word in context])
        y = b + U @ dropped(options, np.tanh(w.affine("hidden_projection", x)))
        logits.append(y + W @ x if options["direct"] else y)
    return logits


def log_bilinear(w: Weights, options: Options, _: Encoded, tgt: Sequence[int]) -> list[Array]:
    """Mnih & Hinton 2007, section 4: r = b_r + sum_i C_i R(w_{t-i}), y = R r + b."""
    n, R = options["order"], w["embedding.weight"]
    C = np.split(w["prediction.weight"], n - 1, axis=1)
    logits = []
    for t in range(1, len(tgt) + 1):
        context = [tgt[t - i] if i <= t else BOS for i in range(1, n)]
        r = w["prediction.bias"] + sum(C[i] @ dropped(options, R[word]) for i, word in enumerate(context))
        logits.append(w["output_projection.weight"] @ dropped(options, r) + w["output_projection.bias"])
    return logits


def ngram(w: Weights, options: Options, _: Encoded, tgt: Sequence[int]) -> list[Array]:
    """The logarithms of the probabilities that the text of ``counted_text`` gives."""
    w.used.update(w.arrays)  # the tables, which are not read here
    model = trained_on_counted_text(options["order"])
    return [np.array([math.log(model.p(v, tuple(tgt[:t]))) for v in range(TGT_VOCAB)]) for t in range(1, len(tgt) + 1)]


@cache
def trained_on_counted_text(order: int) -> "KneserNey":
    return KneserNey(counted_text(TGT_VOCAB), order, TGT_VOCAB)


class KneserNey:
    """Interpolated modified Kneser-Ney (Chen & Goodman 1999, section 3), with dictionaries of tuples of words.

    p_KN(w | h) = max(a(hw) - D(a(hw)), 0) / sum_v a(hv) + gamma(h) p_KN(w | h'), where h' is h without its first word.
    """

    def __init__(self, sentences: Sequence[Sequence[int]], order: int, vocab_size: int) -> None:
        self.order, self.vocab_size = order, vocab_size
        counts: Counter[tuple[int, ...]] = Counter()
        preceding: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for sentence in sentences:
            words = (BOS, *sentence, EOS)
            for end in range(1, len(words) + 1):
                for start in range(max(0, end - order), end):
                    counts[words[start:end]] += 1
                    if start:
                        preceding[words[start:end]].add(words[start - 1])
        self.a = {
            g: c if len(g) == order or g[0] == BOS else len(preceding[g]) for g, c in counts.items() if g != (BOS,)
        }
        self.following: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for g, a in self.a.items():
            self.following[g[:-1]].append(a)
        self.D = {n: self.discounts([a for g, a in self.a.items() if len(g) == n]) for n in range(1, order + 1)}

    @staticmethod
    def discounts(counts: Sequence[int]) -> list[float]:
        """D(0), D_1, D_2 and D_3+ by equation 17; KenLM's 0, 0.5, 1, 1.5 where that divides by 0 or is out of range."""
        n = Counter(counts)
        if not all(n[i] for i in (1, 2, 3)):
            return [0, 0.5, 1, 1.5]
        Y = n[1] / (n[1] + 2 * n[2])
        D = [1 - 2 * Y * n[2] / n[1], 2 - 3 * Y * n[3] / n[2], 3 - 4 * Y * n[4] / n[3]]
        return [0, *D] if all(0 <= d <= i for i, d in enumerate(D, start=1)) else [0, 0.5, 1, 1.5]

    def p(self, word: int, history: tuple[int, ...]) -> float:
        """p_KN of a word after a history of any length."""
        h = history[len(history) - min(len(history), self.order - 1) :]
        while h not in self.following:
            h = h[1:]
        D, total = self.D[len(h) + 1], sum(self.following[h])
        a = self.a.get((*h, word), 0)
        gamma = sum(D[min(b, 3)] for b in self.following[h]) / total
        return (a - D[min(a, 3)]) / total + gamma * (self.p(word, h[1:]) if h else 1 / self.vocab_size)
