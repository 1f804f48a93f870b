"""IBM Model 1 (Brown et al. 1993, section 4.1) on parallel token ids, for vocabulary shortlists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[NDArray[np.integer]]  # the token ids of each sentence, without specials
ITERATIONS = 5
CHUNK = 10_000  # sentence pairs at a time


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """t(y | x) of the co-occurring tokens x and y, sorted by (x, y)."""

    src: NDArray[np.int64]  # x
    tgt: NDArray[np.int64]  # y
    probs: NDArray[np.float64]  # t(y | x), sums to 1 over the y of each x

    def best(self, count: int, src_vocab_size: int) -> NDArray[np.int32]:
        """The ``count`` likeliest y of each x, best first, ``[src_vocab, count]``; -1 where there are fewer."""
        order = np.lexsort((-self.probs, self.src))  # by x, then by falling probability; ties by y
        src = self.src[order]
        rank = np.arange(len(src)) - np.searchsorted(src, src)
        chosen = rank < count
        table = np.full((src_vocab_size, count), -1, dtype=np.int32)
        table[src[chosen], rank[chosen]] = self.tgt[order][chosen]
        return table


def train_lexicon(src: Ids, tgt: Ids, iterations: int = ITERATIONS) -> Lexicon:
    """Expectation maximisation from equal probabilities, without the empty source word.

    In each iteration a target token y counts t(y | x) / sum_x' t(y | x') for each x of its source sentence, and the
    normalised counts of x become t(y | x) (equations 17, 18 and 20). Memory is a few numbers for each pair of tokens
    that occur in a sentence pair together.
    """
    width = 1 + max((int(ids.max()) for ids in tgt if len(ids)), default=0)
    codes = np.empty(0, dtype=np.int64)  # x * width + y of each co-occurring pair
    for links, _ in _links(src, tgt, width):
        codes = np.union1d(codes, links)
    x = codes // width
    probs = np.ones(len(codes))
    for _ in range(iterations):
        shares = np.zeros(len(codes))
        for links, tokens in _links(src, tgt, width):
            pairs = np.searchsorted(codes, links)
            posterior = probs[pairs]
            posterior /= np.bincount(tokens, posterior)[tokens]
            shares += np.bincount(pairs, posterior, minlength=len(codes))
        probs = shares / np.bincount(x, shares)[x]
    return Lexicon(src=x, tgt=codes % width, probs=probs)


def shortlist_tables(
    src: Ids, tgt: Ids, *, src_vocab_size: int, frequent: int, translations: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The most frequent target ids ``[frequent]``, and the likeliest by source id ``[src_vocab, translations]``."""
    counts = np.bincount(np.concatenate([np.asarray(ids, dtype=np.int64) for ids in tgt]))
    order = np.argsort(-counts, kind="stable")[:frequent]
    return order[counts[order] > 0], train_lexicon(src, tgt).best(translations, src_vocab_size)


def _links(src: Ids, tgt: Ids, width: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For chunks of sentences: the code of each pair of a source and a target token, and the latter's number."""
    for begin in range(0, len(src), CHUNK):
        links, tokens, count = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], 0
        for index in range(begin, min(begin + CHUNK, len(src))):
            x, y = (np.asarray(side[index], dtype=np.int64) for side in (src, tgt))
            links.append((x[:, None] * width + y).reshape(-1))
            tokens.append(np.tile(np.arange(count, count + len(y)), len(x)))
            count += len(y)
        yield np.concatenate(links), np.concatenate(tokens)
