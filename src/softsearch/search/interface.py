"""What search and the models know of each other: five methods, NumPy in and out.

A *sentence* is one source sentence still being translated; a *row* is one hypothesis of a sentence. There are
``rows = sentences * beams`` of them, a sentence's rows side by side. The state is opaque to search: only the
:class:`StepFunction` that made it looks inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError

State = Any


class Candidates(NamedTuple):
    """The k most probable next tokens of each row, best first, and where the model looked."""

    log_probs: NDArray[np.float32]  # [rows, k] natural log
    tokens: NDArray[np.int64]  # [rows, k]
    alignments: NDArray[np.float32] | None  # [rows, src_len], sums to 1 over the source


class StepFunction(Protocol):
    """A model (or several) as search sees it: a PyTorch module, an ONNX bundle or an ensemble of either."""

    vocab_size: int

    def start(self, src: Sequence[Sequence[int]]) -> State:
        """Encodes the sentences (token ids, EOS included) and returns a state with one row for each."""
        ...

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """Reads one token per row ``[rows]`` and returns the ``k`` best continuations and the next state."""
        ...

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """Reorders, repeats or drops rows; the result has the same number of rows for every sentence."""
        ...

    def keep(self, state: State, sentences: NDArray[np.int64]) -> State:
        """Keeps only these sentences, with all their rows."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One translation as token ids, without BOS and EOS."""

    tokens: tuple[int, ...]
    log_prob: float  # natural log of p(tokens, EOS | source); without EOS's share when truncated
    score: float  # log_prob after the length penalty; higher is better
    alignments: NDArray[np.float32] | None  # [len(tokens) + 1, src_len] (last row is EOS's; absent when truncated)
    truncated: bool  # the length limit was reached before EOS


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search; shared by every strategy.

    Args:
        beam: hypotheses kept per sentence.
        n_best: translations returned per sentence, at most ``beam``.
        length_penalty: ``alpha`` of score = log_prob / length ** alpha, EOS counted; 0 is none, 1 is the average.
        max_length_factor: the length limit is ``max_length_factor * src_len + max_length_offset`` tokens.
        max_length_offset: see ``max_length_factor``.
        alignments: collect the attention weights of each hypothesis.

    Raises:
        ConfigError: a value is out of range.
    """

    beam: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    max_length_factor: float = 2.0
    max_length_offset: int = 10
    alignments: bool = False

    def __post_init__(self) -> None:
        """Checks the ranges."""
        checks = (
            (self.beam >= 1, "beam", self.beam, "at least 1"),
            (self.n_best >= 1, "n_best", self.n_best, "at least 1"),
            (self.n_best <= self.beam, "n_best", self.n_best, f"at most beam ({self.beam})"),
            (self.length_penalty >= 0, "length_penalty", self.length_penalty, "at least 0"),
            (self.max_length_factor >= 0, "max_length_factor", self.max_length_factor, "at least 0"),
            (self.max_length_offset >= 1, "max_length_offset", self.max_length_offset, "at least 1"),
        )
        for holds, name, found, expected in checks:
            if not holds:
                raise ConfigError(f"search.{name} is {found}, expected {expected}; change {name}")

    def max_length(self, src_len: int) -> int:
        """The most tokens, EOS included, that a translation of ``src_len`` source tokens (EOS excluded) may have."""
        return int(self.max_length_factor * src_len) + self.max_length_offset

    def score(self, log_prob: float, length: int) -> float:
        """The length-normalised score of a hypothesis of ``length`` tokens, EOS counted; higher is better."""
        return float(log_prob / length**self.length_penalty)


class SearchStrategy(Protocol):
    """Greedy, beam, ...: turns sources into n-best lists, best first."""

    def __call__(self, step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Translates one batch of sources given as token ids with EOS."""
        ...
