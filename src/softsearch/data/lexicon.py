"""IBM Model 1 (Brown et al. 1993, section 4.1) on parallel token ids, for vocabulary shortlists."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[NDArray[np.integer]]  # the token ids of the sentences, without special tokens
CHUNK = 10_000  # sentence pairs at a time


def shortlist_tables(
    src: Ids, tgt: Ids, *, src_vocab_size: int, frequent: int, translations: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Returns the most frequent target ids ``[frequent]``, and the likeliest translations of each source id.

    The latter are ``[src_vocab, translations]``, best first, padded with -1.
    """
    counts = np.bincount(np.concatenate([np.asarray(ids, dtype=np.int64) for ids in tgt]))
    common = np.argsort(-counts, kind="stable")[:frequent]
    x, y, probs = train_lexicon(src, tgt)
    order = np.lexsort((-probs, x))  # by x, then by falling probability; ties by y
    x, y = x[order], y[order]
    rank = np.arange(len(x)) - np.searchsorted(x, x)
    chosen = rank < translations
    table = np.full((src_vocab_size, translations), -1, dtype=np.int32)
    table[x[chosen], rank[chosen]] = y[chosen]
    return common[counts[common] > 0], table


def train_lexicon(
    src: Ids, tgt: Ids, iterations: int = 5
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Returns co-occurring source and target tokens x and y, sorted, and t(y | x), which sums to 1 for each x.

    Expectation maximisation from equal probabilities, without the empty source word: in each iteration a target token y
    counts t(y | x) / sum_x' t(y | x') for each x of its source sentence, and the normalised counts of x become t(y | x)
    (equations 17, 18 and 20). Memory use is a few numbers per pair of co-occurring tokens.
    """
    width = 1 + max((int(ids.max()) for ids in tgt if len(ids)), default=0)
    codes = np.empty(0, dtype=np.int64)  # x * width + y for each co-occurring pair
    waiting = list[NDArray[np.int64]]()
    for links, _ in _links(src, tgt, width):
        waiting.append(_distinct(links))
        if sum(map(len, waiting)) > len(codes):  # each code is merged a few times only
            codes, waiting = _distinct(np.concatenate([codes, *waiting])), []
    codes = _distinct(np.concatenate([codes, *waiting]))
    x = codes // width
    probs = np.ones(len(codes))
    for _ in range(iterations):
        shares = np.zeros(len(codes))
        for links, tokens in _links(src, tgt, width):
            distinct, own = np.unique(links, return_inverse=True)  # a sorted search is several times as fast
            pairs = np.searchsorted(codes, distinct)
            posterior = probs[pairs][own]
            posterior /= np.bincount(tokens, posterior)[tokens]
            shares[pairs] += np.bincount(own, posterior)
        probs = shares / np.bincount(x, shares)[x]
    return x, codes % width, probs


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns sorted numbers without repetitions, ten times as fast as ``np.unique``, which hashes them."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) != 0]


def _links(src: Ids, tgt: Ids, width: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yields, for chunks of sentences, the code of each source and target token pair, and the target token's number."""
    for begin in range(0, len(src), CHUNK):
        chunk = slice(begin, begin + CHUNK)
        links, tokens, count = [], [], 0
        for pair in zip(src[chunk], tgt[chunk], strict=True):
            x, y = (np.asarray(ids, dtype=np.int64) for ids in pair)
            links.append((x[:, None] * width + y).reshape(-1))
            tokens.append(np.tile(np.arange(count, count + len(y)), len(x)))
            count += len(y)
        yield np.concatenate(links), np.concatenate(tokens)
