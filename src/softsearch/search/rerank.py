"""N-best lists put in a new order by other models' opinions of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.interface import (
    Hypothesis,
    SearchStrategy,
    StepFunction,
    at_least,
    check_options,
    length_penalty_in_range,
)
from softsearch.search.scoring import score_pairs
from softsearch.text.vocabulary import EOS

BATCH_TOKENS = 4096
IdMapping = Callable[[Sequence[int]], list[int]]


@dataclass(frozen=True)
class RescoringModel:
    """A model beside the one that searches, with its own ids for the same text.

    Args:
        step_fn: the model.
        src: makes its source ids of the searching model's, both without EOS; None: they are the same.
        tgt: likewise its target ids.
        back: makes the searching model's target ids of its own; only of one that proposes translations.
    """

    step_fn: StepFunction
    src: IdMapping | None = None
    tgt: IdMapping | None = None
    back: IdMapping | None = None

    def sources(self, src: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """The sources, with EOS, as this model reads them."""
        return [ids if self.src is None else [*self.src(ids[:-1]), EOS] for ids in src]

    def score(self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> list[float]:
        """Its log probability of each pair, given as the searching model's ids."""
        own = [ids if self.tgt is None else self.tgt(ids) for ids in tgt]
        return [pair.log_prob for pair in score_pairs(self.step_fn, self.sources(src), own, batch_tokens=BATCH_TOKENS)]

    def propose(self, search: SearchStrategy, src: Sequence[Sequence[int]]) -> list[list[tuple[int, ...]]]:
        """Its n-best translations of each source that it could end, as the searching model's ids."""
        found = search(self.step_fn, self.sources(src))
        back = self.back or list
        return [[tuple(back(h.tokens)) for h in n_best if not h.truncated] for n_best in found]


class Scored(NamedTuple):
    """One translation with what each model thinks of it."""

    hypothesis: Hypothesis  # with the searching model's log probability
    log_probs: tuple[float, ...]  # of the searching model, then of each scorer


class Rerank:
    """Searches, lets other models score all that was found, and returns the best by a weighted sum.

    The score of a translation is ``sum_i w_i log p_i / length ** length_penalty``, where p_1 is the searching model's
    probability and the length is counted in its tokens, EOS included. Models that write from right to left (Liu et al.
    2016, N16-1046; Sennrich et al. 2016, arXiv:1606.02891, section 4), language models and any others can score; what a
    proposer finds with the same search is scored with the rest. Translations that the length limit cut off stay behind
    those that ended.

    Args:
        search: finds the n-best lists.
        scorers: the other models.
        weights: of the searching model, then of each scorer; by default all alike. They may be negative.
        length_penalty: see above.
        n_best: translations returned per sentence.
        proposers: models whose own n-best lists are joined with the search's.

    Raises:
        ConfigError: the weights are not as many as the models, or an option is out of range.
    """

    def __init__(
        self,
        search: SearchStrategy,
        scorers: Sequence[RescoringModel],
        weights: Sequence[float] | None = None,
        *,
        length_penalty: float = 1.0,
        n_best: int = 1,
        proposers: Sequence[RescoringModel] = (),
    ) -> None:
        expected = 1 + len(scorers)
        self.weights = [1.0] * expected if weights is None else list(weights)
        if len(self.weights) != expected or not np.isfinite(self.weights).all() or not any(self.weights):
            raise ConfigError(
                f"search.weights is {self.weights}, expected {expected} numbers that are not all 0: one for the "
                "searching model and one for each of search.models"
            )
        check_options(at_least("n_best", n_best, 1), length_penalty_in_range(length_penalty))
        self.search, self.scorers, self.proposers = search, scorers, proposers
        self.length_penalty, self.n_best = length_penalty, n_best

    def __call__(self, step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Translates one batch; see :class:`softsearch.search.interface.SearchStrategy`.

        A hypothesis keeps the searching model's log probability, and has the weighted score; one that another model
        proposed has no alignments.

        Raises:
            InputError: a model returned NaN.
        """
        return [
            [
                replace(scored[i].hypothesis, score=float(score))
                for i, score in ranked(scored, self.weights, self.length_penalty)[: self.n_best]
            ]
            for scored in self.candidates(step_fn, src)
        ]

    def candidates(self, step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Scored]]:
        """All translations of each source that the models found, with all their scores; the searching model's first."""
        lists = [list(n_best) for n_best in self.search(step_fn, src)]
        self._join(step_fn, src, lists)
        places = [index for index, n_best in enumerate(lists) for _ in n_best]
        repeated = [src[index] for index in places]
        tokens = [h.tokens for n_best in lists for h in n_best]
        by_scorer = [scorer.score(repeated, tokens) for scorer in self.scorers]
        columns = iter(zip(*by_scorer, strict=True) if by_scorer else [()] * len(tokens))
        return [[Scored(h, (h.log_prob, *next(columns))) for h in n_best] for n_best in lists]

    def _join(self, step_fn: StepFunction, src: Sequence[Sequence[int]], lists: list[list[Hypothesis]]) -> None:
        """Adds to ``lists`` what only the proposers found, scored by the searching model."""
        new: list[tuple[int, tuple[int, ...]]] = []
        known = [{h.tokens for h in n_best} for n_best in lists]
        for proposer in self.proposers:
            for index, proposals in enumerate(proposer.propose(self.search, src)):
                for tokens in proposals:
                    if tokens not in known[index]:
                        known[index].add(tokens)
                        new.append((index, tokens))
        sources = [src[index] for index, _ in new]
        scores = score_pairs(step_fn, sources, [tokens for _, tokens in new], batch_tokens=BATCH_TOKENS)
        for (index, tokens), pair in zip(new, scores, strict=True):
            lists[index].append(Hypothesis(tokens, pair.log_prob, pair.log_prob, None, truncated=False))


def ranked(scored: Sequence[Scored], weights: Sequence[float], length_penalty: float) -> list[tuple[int, float]]:
    """The places of the translations of one source, best first, with their weighted scores; ties keep their order."""
    if not scored:
        return []
    scores = weighted_scores(
        np.array([s.log_probs for s in scored]),
        np.array([length_of(s.hypothesis) for s in scored]),
        weights,
        length_penalty,
    )
    order = sorted(range(len(scored)), key=lambda i: (scored[i].hypothesis.truncated, -scores[i]))
    return [(i, float(scores[i])) for i in order]


def length_of(hypothesis: Hypothesis) -> int:
    """Tokens of a translation, with EOS where it has one."""
    return len(hypothesis.tokens) + (not hypothesis.truncated)


def weighted_scores(
    log_probs: NDArray[np.float64], lengths: NDArray[np.int64], weights: Sequence[float], length_penalty: float
) -> NDArray[np.float64]:
    """``sum_i w_i log p_i / length ** length_penalty`` for ``log_probs [translations, models]``.

    What a model holds impossible is -inf, whatever the sign of its weight, unless the weight is 0.
    """
    used = np.flatnonzero(weights)
    kept = log_probs[:, used]
    impossible = np.isneginf(kept).any(axis=1)
    total = np.where(np.isneginf(kept), 0.0, kept) @ np.asarray(weights, dtype=np.float64)[used]
    return np.where(impossible, -np.inf, total / lengths.astype(np.float64) ** length_penalty)
