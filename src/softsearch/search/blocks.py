"""Beam search in blocks of steps: the model makes a beam's choices too, and Python sees several steps at a time.

A call from Python to a graph costs as much as a step of a small model. This module, a part of
``BeamSearch``, turns a block's choices into the same hypotheses, scores and ties.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.search.history import History
from softsearch.search.interface import Hypothesis, Sentences, StepFunction
from softsearch.search.options import OutputOptions, SearchOptions, length_norm
from softsearch.text.vocabulary import BOS

# Sentences; larger batches are faster in single steps, which drop sentences that have ended. At this size a state
# copies the sentences that stay as soon as one ends (runtime.onnx_state), so its sentences are those of the search.
MAX_SENTENCES = 4
_LIMITS = OutputOptions.hints.keys() - {"alignments"}
_STEPS = 32  # for one sentence; fewer for several


class Ending(NamedTuple):
    """A hypothesis that ended; its tokens are read from the history when it is returned."""

    score: float
    log_prob: float
    length: int  # number of tokens, EOS included unless truncated
    row: int  # the row that predicted EOS, or the hypothesis's own row if truncated
    truncated: bool


def in_blocks(step_fn: StepFunction, src: Sentences, options: SearchOptions) -> list[list[Hypothesis]] | None:
    """The n-best lists, best first; None if single steps must search, or report what is wrong with the model."""
    if (
        not getattr(step_fn, "has_block", False)
        or len(src) > MAX_SENTENCES
        or not options.has_only(_LIMITS)  # which a block heeds, or the caller has looked at
        or options.beam >= step_fn.vocab_size
    ):
        return None
    model: Any = step_fn
    limits = np.array([[options.lengths(len(ids)).most] for ids in src])
    norms = np.asarray(length_norm(np.arange(limits.max() + 1), options.length_penalty, options.length_norm))
    sizes = {"size": options.beam, "returned": options.n_best, "k": options.beam + 1, "twice": 2 * options.beam}
    settings = {"norms": norms.astype(np.float64), **{name: np.array([size]) for name, size in sizes.items()}}
    by_sentence = {
        "limits": limits,
        "limit_norms": settings["norms"][limits],
        "tokens": np.full((len(src), 1), BOS),
        "log_probs": np.zeros((len(src), 1)),
        "best_scores": np.full((len(src), options.n_best), -np.inf),
        "ended": np.zeros((len(src), 1), dtype=np.int64),
    }
    found = _Results(options, len(src))
    state, live, length = model.start(src), np.arange(len(src)), 0
    while True:
        steps = min(_STEPS // live.size, int(by_sentence["limits"].max()) - length)
        chosen, state = model.run_block(settings | by_sentence, state, steps)
        if not (chosen["checked"] < np.inf).all():  # NaN or +inf: single steps report the position
            return None
        found.add(chosen, live, by_sentence["limits"][:, 0], length)
        length += len(chosen["checked"])
        going = np.flatnonzero((chosen["next_log_probs"] > -np.inf).any(axis=1))
        if not going.size:
            return found.n_best()
        by_sentence["tokens"] = chosen["all_tokens"][-1]
        by_sentence |= {name: chosen[f"next_{name}"] for name in ("log_probs", "best_scores", "ended")}
        if going.size < live.size:
            state, live = model.keep(state, going), live[going]
            by_sentence = {name: values[going] for name, values in by_sentence.items()}


class _Results:
    """The choices made in the steps of a batch."""

    def __init__(self, options: SearchOptions, sentences: int) -> None:
        self.options = options
        self.history = History([0] * sentences, alignments=False)
        self.endings: list[list[Ending]] = [[] for _ in range(sentences)]

    def add(
        self, chosen: dict[str, NDArray[Any]], live: NDArray[np.int64], limits: NDArray[np.int64], length: int
    ) -> None:
        """Records the steps of a block for the sentences ``live``, which had ``length`` tokens before it."""
        end_log_probs, end_rows, survivors = (chosen[name] for name in ("end_log_probs", "end_rows", "survivors"))
        for parents, tokens in zip(chosen["all_parents"], chosen["all_tokens"], strict=True):
            self.history.add_choices(live, parents, tokens)
        for step, index, rank in np.argwhere(end_log_probs > -np.inf).tolist():
            self._end(live[index], end_log_probs[step, index, rank], length + step + 1, end_rows[step, index, rank])
        at_limit = np.flatnonzero((length < limits) & (limits <= length + len(survivors)))
        for index in at_limit.tolist():
            last = survivors[limits[index] - length - 1, index]
            for row in np.flatnonzero(last > -np.inf).tolist():
                self._end(live[index], last[row], limits[index], row, truncated=True)

    def _end(self, sentence: int, log_prob: float, length: int, row: int, *, truncated: bool = False) -> None:
        score = self.options.score(float(log_prob), int(length))
        self.endings[sentence].append(Ending(score, float(log_prob), int(length), int(row), truncated))

    def n_best(self) -> list[list[Hypothesis]] | None:
        """The hypotheses that ended, by score, then those that were cut off; None if a sentence has none."""
        best = [sorted(ends, key=lambda end: (end.truncated, -end.score)) for ends in self.endings]
        lists = [
            [self._read(sentence, end) for end in ends[: self.options.n_best]] for sentence, ends in enumerate(best)
        ]
        return lists if all(lists) else None

    def _read(self, sentence: int, end: Ending) -> Hypothesis:
        tokens, _ = self.history.trace(sentence, end.length, end.row, ended=not end.truncated)
        return Hypothesis(tokens, end.log_prob, end.score, None, end.truncated)
