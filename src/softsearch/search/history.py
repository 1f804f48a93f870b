"""Back-pointers of a running search: hypotheses are read off once at the end instead of being copied at each step."""

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.interface import Candidates


class History:
    """What every row chose at every step, for all sentences of a batch, finished ones included.

    Args:
        sentences: sentences in the batch at the start.
        src_lengths: source tokens of each sentence, EOS included; alignments are cut to them.
        alignments: keep the attention weights too.
    """

    def __init__(self, sentences: int, src_lengths: list[int], *, alignments: bool) -> None:
        self._sentences = sentences
        self._src_lengths = src_lengths
        self._keep_alignments = alignments
        self._parents: list[NDArray[np.int64]] = []  # per step [sentences, beams]: row of the step before
        self._tokens: list[NDArray[np.int64]] = []  # per step [sentences, beams]
        self._alignments: list[NDArray[np.float32]] = []  # per step [sentences, rows that predicted, src_len]

    def add_choices(self, live: NDArray[np.int64], parents: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        """Records one step's surviving rows ``[live sentences, beams]``; ``live`` numbers the sentences."""
        for steps, choices in ((self._parents, parents), (self._tokens, tokens)):
            everyone = np.zeros((self._sentences, choices.shape[1]), dtype=np.int64)
            everyone[live] = choices
            steps.append(everyone)

    def add_alignments(self, live: NDArray[np.int64], alignments: NDArray[np.float32] | None) -> None:
        """Records where the rows of the live sentences looked, ``[rows, src_len]``, before they are reordered.

        Raises:
            InputError: alignments were asked for and the model has none.
        """
        if not self._keep_alignments:
            return
        if alignments is None:
            raise InputError("alignments were asked for but this model computes none; search without alignments")
        per_sentence = alignments.reshape(len(live), -1, alignments.shape[-1])  # [live, beams, src_len]
        everyone = np.zeros((self._sentences, *per_sentence.shape[1:]), dtype=np.float32)
        everyone[live] = per_sentence
        self._alignments.append(everyone)

    def trace(self, sentence: int, steps: int, row: int) -> tuple[tuple[int, ...], list[NDArray[np.float32]]]:
        """Follows ``row``, as it stood after ``steps`` steps, back to BOS: its tokens and their alignments."""
        tokens: list[int] = []
        alignments: list[NDArray[np.float32]] = []
        for step in range(steps - 1, -1, -1):
            tokens.append(int(self._tokens[step][sentence, row]))
            row = int(self._parents[step][sentence, row])
            if self._keep_alignments:
                alignments.append(self.alignment(sentence, step, row))
        return tuple(reversed(tokens)), alignments[::-1]

    def alignment(self, sentence: int, step: int, row: int) -> NDArray[np.float32]:
        """Where ``row`` looked when it predicted the token of ``step`` (from 0), ``[src_len]``."""
        return self._alignments[step][sentence, row, : self._src_lengths[sentence]]


def check_candidates(candidates: Candidates, step: int) -> None:
    """Refuses probabilities with which no search can end well.

    Raises:
        InputError: a row has NaN or no candidate of finite log probability.
    """
    bad = ~np.isfinite(candidates.log_probs.max(axis=1))  # NaN where one is NaN
    if bad.any():
        row = int(bad.argmax())
        found = candidates.log_probs[row, :10].tolist()
        raise InputError(
            f"the model's log probabilities at target position {step}, row {row} are {found}, "
            "expected finite numbers: the model's weights are broken; use another checkpoint"
        )


def no_token_left() -> InputError:
    """The error of a sentence in which the constraints forbid whatever the model could write next."""
    return InputError(
        "the constraints forbid all tokens that may come next before the sentence may end; "
        "ban fewer tokens, or lower search.min_length_factor, min_length_offset or no_repeat_ngram"
    )
