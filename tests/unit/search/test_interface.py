"""The best candidates against a stable sort of everything, ties included."""

import numpy as np
import pytest

from softsearch.search.interface import best_candidates


@pytest.mark.parametrize("size", [1, 5, 64, 65, 1000])
@pytest.mark.parametrize("k", [1, 6, 15, 64, 2000])
@pytest.mark.parametrize("distinct", [1, 3, 40, 10_000])
def test_the_best_candidates_are_those_of_a_stable_sort(size: int, k: int, distinct: int) -> None:
    rng = np.random.default_rng([size, k])
    log_probs = -rng.integers(0, distinct, (7, size)).astype(np.float32) / 3  # has 0 and -0
    log_probs[3] += 2  # scores may be above 0
    log_probs[0, 5:] = -np.inf
    log_probs[1] = -np.inf
    tokens = rng.permutation(10 * size)[:size]
    alignments = np.ones((7, 3), dtype=np.float32)
    found = best_candidates(log_probs, tokens, alignments, k)
    order = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.log_probs, np.take_along_axis(log_probs, order, axis=1))
    np.testing.assert_array_equal(found.tokens, tokens[order])
    assert found.alignments is alignments
    own = rng.integers(0, 99, log_probs.shape)  # other tokens in each row
    of_rows = best_candidates(log_probs, own, None, k)
    np.testing.assert_array_equal(of_rows.tokens, np.take_along_axis(own, order, axis=1))
