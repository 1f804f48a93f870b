"""Back-pointers of a running search: hypotheses are read off once at the end instead of being copied at each step."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError


class History:
    """The choices of every row at every step, for all sentences of a batch, finished ones included.

    With ``alignments`` it also keeps the attention, cut to ``src_lengths`` (tokens of each source, EOS included).
    """

    def __init__(self, src_lengths: list[int], *, alignments: bool) -> None:
        self._src_lengths = src_lengths
        self._keep_alignments = alignments
        self._parents: list[NDArray[np.int64]] = []  # per step [sentences, beams]: row in the previous step
        self._tokens: list[NDArray[np.int64]] = []  # per step [sentences, beams]
        self._alignments: list[NDArray[np.float32]] = []  # per step [sentences, rows that predicted, src_len]

    def add_choices(self, live: NDArray[np.int64], parents: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        """Records one step's surviving rows ``[live sentences, beams]``; ``live`` are the sentences' indices."""
        for steps, choices in ((self._parents, parents), (self._tokens, tokens)):
            steps.append(self.for_all(live, choices))

    def add_alignments(self, live: NDArray[np.int64], alignments: NDArray[np.float32] | None) -> None:
        """Records the attention of the live sentences' rows, ``[rows, src_len]``, before they are reordered.

        Raises:
            InputError: alignments were requested but the model has none.
        """
        if not self._keep_alignments:
            return
        if alignments is None:
            raise InputError("alignments were requested, but this model computes none; search without alignments")
        per_sentence = alignments.reshape(len(live), -1, alignments.shape[-1])  # [live, beams, src_len]
        self._alignments.append(self.for_all(live, per_sentence))

    def trace(
        self, sentence: int, length: int, row: int, *, ended: bool
    ) -> tuple[tuple[int, ...], NDArray[np.float32] | None]:
        """The tokens of a hypothesis without EOS, and the alignments ``[length, src_len]`` if they are kept.

        ``length`` counts EOS if the hypothesis ``ended``. ``row`` is then the one that predicted EOS, else the
        hypothesis's own after ``length`` steps.
        """
        tokens: list[int] = []
        alignments: list[NDArray[np.float32]] = []
        for step in reversed(range(length)):
            if step < length - ended:
                tokens.append(int(self._tokens[step][sentence, row]))
                row = int(self._parents[step][sentence, row])
            if self._keep_alignments:
                alignments.append(self._alignments[step][sentence, row, : self._src_lengths[sentence]])
        return tuple(reversed(tokens)), np.stack(alignments[::-1]) if alignments else None

    def for_all(self, live: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
        """The values of the live sentences, with 0 for all others."""
        if len(live) == len(self._src_lengths):
            return values
        everyone = np.zeros((len(self._src_lengths), *values.shape[1:]), dtype=values.dtype)
        everyone[live] = values
        return everyone
