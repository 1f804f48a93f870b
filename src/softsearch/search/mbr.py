"""Minimum Bayes risk decoding: the translation with the highest expected utility instead of the most probable one."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softsearch.option import check_option, expect
from softsearch.search.interface import Hypothesis, SearchStrategy, Sentences, StepFunction
from softsearch.search.options import NBest
from softsearch.search.sampling import Sampling

Tokens = tuple[int, ...]
# Candidates and references as token ids without EOS -> how good each candidate is, [candidates, references].
PairwiseUtility = Callable[[Sequence[Tokens], Sequence[Tokens]], NDArray[np.floating]]


class MinimumBayesRisk:
    """Chooses y* = argmax over candidates y of the expected utility, sum over references y' of p(y') u(y, y').

    Kumar & Byrne 2004 (N04-1022, equation 4); Eikema & Aziz 2020 (arXiv:2005.10283, section 7) and 2022
    (arXiv:2108.04718, section 3).

    References stand for the model's distribution. Samples count equally (the Monte Carlo estimate of Eikema & Aziz);
    the n-best list of another search contains each translation once, so each counts by its probability, normalised over
    the list (Kumar & Byrne). A repeated translation is scored once. Truncated translations are neither candidates nor
    references, unless all are truncated.

    Args:
        candidates: the search that finds the candidates.
        utility: a function of all pairs of candidates and references.
        references: the search that finds the references; None: the candidates are the references.
        n_best: number of candidates to return, ranked by expected utility.

    Raises:
        ConfigError: there would be only one candidate, or an option is out of range.
    """

    def __init__(
        self,
        candidates: SearchStrategy,
        utility: PairwiseUtility,
        *,
        references: SearchStrategy | None = None,
        n_best: NBest = 1,
    ) -> None:
        found = getattr(candidates, "n_best", 1)
        expect(found > 1, "candidates.n_best", found, "at least 2, such as samples or a beam's n-best list")
        self.n_best: int = check_option("n_best", n_best, NBest)
        self.candidates, self.references, self.utility = candidates, references, utility

    def __call__(self, step_fn: StepFunction, src: Sentences) -> list[list[Hypothesis]]:
        """Translates one batch; see ``softsearch.search.SearchStrategy``.

        A hypothesis keeps the model's log probability; its score is the expected utility. InputError if the model
        returned NaN.
        """
        candidates = self.candidates(step_fn, src)
        references = candidates if self.references is None else self.references(step_fn, src)
        sampled = isinstance(self.references or self.candidates, Sampling)
        return [self._best(*lists, sampled) for lists in zip(candidates, references, strict=True)]

    def _best(self, candidates: list[Hypothesis], references: list[Hypothesis], sampled: bool) -> list[Hypothesis]:
        different = {hypothesis.tokens: hypothesis for hypothesis in reversed(_ended(candidates))}
        choices = list(different.values())[::-1]  # the first of equals, in the order of discovery
        shares = reference_shares(_ended(references), sampled=sampled)
        utilities = self.utility([hypothesis.tokens for hypothesis in choices], list(shares))
        expected = utilities @ np.array(list(shares.values()))
        order = np.argsort(-expected, kind="stable")[: self.n_best]
        return [replace(choices[index], score=float(expected[index])) for index in order]


def reference_shares(references: Sequence[Hypothesis], *, sampled: bool) -> dict[Tokens, float]:
    """The distinct references with their shares of the probability, which sum to 1."""
    if sampled:
        counts = Counter(hypothesis.tokens for hypothesis in references)
        return {tokens: count / counts.total() for tokens, count in counts.items()}
    log_probs = {hypothesis.tokens: hypothesis.log_prob for hypothesis in references}  # repetitions count once
    weights = np.exp(np.array(list(log_probs.values())) - max(log_probs.values()))
    return dict(zip(log_probs, (weights / weights.sum()).tolist(), strict=True))


def _ended(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    return [hypothesis for hypothesis in hypotheses if not hypothesis.truncated] or hypotheses
