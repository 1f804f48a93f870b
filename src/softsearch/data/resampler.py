"""Subword regularisation: a new segmentation of each pair at each epoch."""

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softsearch.text.subword_sampling import SubwordSampler

# Batches are cut as if sentences grew by this factor. On Multi30k they grow by a fifth with BPE-dropout of 0.1 and by a
# third with unigram and 0.2, the longest of a batch by nearly 2, so that few do not fit.
ROOM = 2.0

Ids = NDArray[np.integer]


class Resampler:
    """Draws segmentations as a pure function of the seed and the draw, which is a pair at an epoch.

    So they do not depend on the number of workers or processes, nor on interruptions. Sampled segmentations are mostly
    longer than the ones that the batches were cut by. A side whose sample would take its batch beyond the budget of
    ``tokens`` keeps the stored segmentation in this epoch; ``ROOM`` makes that rare.
    """

    def __init__(self, samplers: tuple[SubwordSampler, SubwordSampler], *, tokens: int, seed: int) -> None:
        self.samplers, self.tokens, self.seed = samplers, tokens, seed

    def __call__(self, draws: Sequence[int], pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
        """Returns the pairs of a batch in the segmentations of their draws."""
        most = self.tokens // len(draws) - 1  # EOS takes one place
        return [self._pair(draw, pair, most) for draw, pair in zip(draws, pairs, strict=True)]

    def _pair(self, draw: int, pair: tuple[Ids, Ids], most: int) -> tuple[Ids, Ids]:
        rng = random.Random(f"{self.seed} {draw}")
        src, tgt = (
            np.asarray(sampler(ids.tolist(), rng), dtype=ids.dtype)
            for sampler, ids in zip(self.samplers, pair, strict=True)
        )
        return src if len(src) <= most else pair[0], tgt if len(tgt) <= most else pair[1]
