"""Greedy search: the most probable token at each step."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from softsearch.search.interface import (
    Candidates,
    Hypothesis,
    OutputOptions,
    PrefixStrategy,
    SearchOptions,
    StepFunction,
)
from softsearch.search.token_by_token import write


@dataclass(frozen=True, kw_only=True)
class Greedy(OutputOptions, PrefixStrategy):
    """Takes the best token of each row until EOS or the length limit; one hypothesis per sentence.

    Takes every option of :class:`OutputOptions`; the score is the mean log probability of a token.
    """

    @property
    def options(self) -> SearchOptions:
        """The beam search that finds the same."""
        return SearchOptions(beam=1, **asdict(self))

    def __call__(
        self,
        step_fn: StepFunction,
        src: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Hypothesis]]:
        """See PrefixStrategy."""
        return write(step_fn, src, self, _best, prefixes=prefixes, k=1) if src else []


def _best(candidates: Candidates, _live: NDArray[np.int64], _length: int) -> NDArray[np.int64]:
    return candidates.log_probs.argmax(axis=1)[:, None]
