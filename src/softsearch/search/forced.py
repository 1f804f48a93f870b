"""Where a model looks while it reads translations that are known."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softsearch.search.batching import plan_batches
from softsearch.search.interface import StepFunction
from softsearch.text.vocabulary import BOS, EOS


def forced_alignments(
    step_fn: StepFunction, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]], *, batch_tokens: int
) -> list[NDArray[np.float32]] | None:
    """Steps through the target tokens, whatever the model would have chosen; needs no search.

    Args:
        step_fn: the model.
        src: token ids with EOS.
        tgt: as many translations, token ids with EOS (or without it, where a length limit cut them).
        batch_tokens: the most tokens of a batch on either side, padding included; a longer pair goes alone.

    Returns:
        For each sentence ``[tgt_len, src_len]``, each row a distribution over the source; None if the model has no
        alignments.
    """
    looked: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(src)
    lengths = [max(map(len, pair)) for pair in zip(src, tgt, strict=True)]
    for batch in plan_batches(lengths, batch_tokens):
        found = _align_batch(step_fn, [src[i] for i in batch], [tgt[i] for i in batch])
        if found is None:
            return None
        for index, matrix in zip(batch, found, strict=True):
            looked[index] = matrix
    return looked


def _align_batch(
    step_fn: StepFunction, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]
) -> list[NDArray[np.float32]] | None:
    rows = []
    state = step_fn.start(src)
    read = np.full(len(src), BOS, dtype=np.int64)
    for position in range(max(map(len, tgt))):
        candidates, state = step_fn.step(read, state, 1)
        if candidates.alignments is None:
            return None
        rows.append(candidates.alignments)
        read = np.array([ids[position] if position < len(ids) else EOS for ids in tgt], dtype=np.int64)
    if not rows:
        return [np.empty((0, len(ids)), dtype=np.float32) for ids in src]
    together = np.stack(rows, axis=1)  # [sentences, longest target, longest source]
    return [matrix[: len(t), : len(s)] for matrix, s, t in zip(together, src, tgt, strict=True)]
