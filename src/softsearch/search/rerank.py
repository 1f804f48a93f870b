"""Reranking: n-best lists reordered by a weighted sum of several models' log probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from softsearch.errors import ConfigError
from softsearch.option import Option, check_option
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.interface import Hypothesis, SearchStrategy, Sentences, StepFunction
from softsearch.search.options import LengthPenalty, NBest

BATCH_TOKENS = 4096
Scorers = Annotated[
    list[str], Option("models that score the results of beam search: right-to-left, language models or others")
]
Weights = Annotated[
    list[float] | None, Option("weights of the searching model, then of each other; softsearch tune finds them")
]
WeightedPenalty = Annotated[LengthPenalty, Option("divide the weighted sum by length ** X; 0: off", 1.0)]
IdMapping = Callable[[Sequence[int]], list[int]]


@dataclass(frozen=True)
class RescoringModel:
    """An additional model that scores or proposes translations, with its own token ids."""

    step_fn: StepFunction
    src: IdMapping | None = None  # from the searching model's source ids to this model's; None: they are the same
    tgt: IdMapping | None = None  # the same for target ids
    back: IdMapping | None = None  # from this model's target ids to the searching model's

    def sources(self, src: Sentences) -> list[Sequence[int]]:
        """The sources as this model reads them."""
        return [ids if self.src is None else self.src(ids) for ids in src]

    def score(self, src: Sentences, tgt: Sentences) -> list[float]:
        """Its log probability of each pair, given as the searching model's ids."""
        own = [ids if self.tgt is None else self.tgt(ids) for ids in tgt]
        return [pair.log_prob for pair in score_pairs(self.step_fn, self.sources(src), own, batch_tokens=BATCH_TOKENS)]

    def propose(self, search: SearchStrategy, src: Sentences) -> list[list[tuple[int, ...]]]:
        """Its n-best translations of each source, without truncated ones, as the searching model's ids."""
        lists = search(self.step_fn, self.sources(src))
        back = self.back or list
        return [[tuple(back(h.tokens)) for h in n_best if not h.truncated] for n_best in lists]


class ScoredHypothesis(NamedTuple):
    """One translation with each model's log probability."""

    hypothesis: Hypothesis  # its log_prob is the searching model's
    log_probs: tuple[float, ...]  # of the searching model, then of each scorer


class Rerank:
    """Searches, scores all hypotheses with other models too, and returns the best by a weighted sum.

    The score of a translation is ``sum_i w_i log p_i / length ** length_penalty``, where p_1 is the searching model's
    probability and the length is counted in its tokens, EOS included. Weights are equal by default and may be negative.
    Scorers may be models that write from right to left (Liu et al. 2016, N16-1046; Sennrich et al. 2016,
    arXiv:1606.02891, section 4), language models and any others. Proposers run the same search; their translations are
    scored with the rest. Truncated translations rank below those that ended.

    Raises:
        ConfigError: the number of weights differs from that of the models, or an option is out of range.
    """

    def __init__(
        self,
        search: SearchStrategy,
        scorers: Sequence[RescoringModel],
        weights: Sequence[float] | None = None,
        *,
        length_penalty: WeightedPenalty = 1.0,
        n_best: NBest = 1,
        proposers: Sequence[RescoringModel] = (),
    ) -> None:
        expected = 1 + len(scorers)
        self.weights = [1.0] * expected if weights is None else list(weights)
        if len(self.weights) != expected or not np.isfinite(self.weights).all() or not any(self.weights):
            raise ConfigError(
                f"search.weights is {self.weights}, expected {expected} numbers that are not all 0: one for the "
                "searching model and one for each of search.models"
            )
        self.n_best: int = check_option("n_best", n_best, NBest)
        self.length_penalty: float = check_option("length_penalty", length_penalty, WeightedPenalty)
        self.search, self.scorers, self.proposers = search, scorers, proposers

    def score(self, log_prob: float, length: int) -> float:
        """The score of a translation of ``length`` tokens, EOS included, from its weighted sum."""
        return log_prob * float(length**-self.length_penalty)

    def __call__(self, step_fn: StepFunction, src: Sentences) -> list[list[Hypothesis]]:
        """Translates one batch; see ``softsearch.search.SearchStrategy``.

        A hypothesis keeps the searching model's log probability and gets the weighted score; one that another model
        proposed has no alignments. InputError if a model returned NaN.
        """
        return [
            [
                replace(scored[i].hypothesis, score=float(score))
                for i, score in ranked(scored, self.weights, self.length_penalty)[: self.n_best]
            ]
            for scored in self.candidates(step_fn, src)
        ]

    def candidates(self, step_fn: StepFunction, src: Sentences) -> list[list[ScoredHypothesis]]:
        """All models' translations of each source with all scores; the searching model's come first."""
        lists = [list(n_best) for n_best in self.search(step_fn, src)]
        self._join(step_fn, src, lists)
        repeated = [ids for ids, n_best in zip(src, lists, strict=True) for _ in n_best]
        tokens = [h.tokens for n_best in lists for h in n_best]
        by_scorer = [scorer.score(repeated, tokens) for scorer in self.scorers]
        columns = iter(zip(*by_scorer, strict=True) if by_scorer else [()] * len(tokens))
        return [[ScoredHypothesis(h, (h.log_prob, *next(columns))) for h in n_best] for n_best in lists]

    def _join(self, step_fn: StepFunction, src: Sentences, lists: list[list[Hypothesis]]) -> None:
        """Adds to ``lists`` the translations that only proposers found, scored by the searching model."""
        new: list[tuple[int, tuple[int, ...]]] = []
        seen = [{h.tokens for h in n_best} for n_best in lists]
        for proposer in self.proposers:
            for index, proposals in enumerate(proposer.propose(self.search, src)):
                for tokens in proposals:
                    if tokens not in seen[index]:
                        seen[index].add(tokens)
                        new.append((index, tokens))
        sources = [src[index] for index, _ in new]
        scores = score_pairs(step_fn, sources, [tokens for _, tokens in new], batch_tokens=BATCH_TOKENS)
        for (index, tokens), pair in zip(new, scores, strict=True):
            lists[index].append(Hypothesis(tokens, pair.log_prob, pair.log_prob, None, truncated=False))


def ranked(
    scored: Sequence[ScoredHypothesis], weights: Sequence[float], length_penalty: float
) -> list[tuple[int, float]]:
    """The indices of one source's translations, best first, with their weighted scores; ties keep their order.

    A log probability of -inf makes the score -inf, whatever the sign of its weight, unless the weight is 0.
    """
    used = np.flatnonzero(weights)
    log_probs = np.array([s.log_probs for s in scored])[:, used]
    lengths = np.array([s.hypothesis.length for s in scored], dtype=np.float64)
    impossible = np.isneginf(log_probs)
    total = np.where(impossible, 0.0, log_probs) @ np.asarray(weights, dtype=np.float64)[used]
    scores = np.where(impossible.any(axis=1), -np.inf, total / lengths**length_penalty)
    order = sorted(range(len(scored)), key=lambda i: (scored[i].hypothesis.truncated, -scores[i]))
    return [(i, float(scores[i])) for i in order]
