"""Sampling: translations drawn at random from the model's distribution, or from its most probable part."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from softsearch.option import Option
from softsearch.ranges import Range, Seed
from softsearch.search.greedy import write
from softsearch.search.interface import Candidates, Hypothesis, PrefixStrategy, Sentences, StepFunction
from softsearch.search.options import NBest, OutputOptions
from softsearch.text.vocabulary import with_eos

_PROBABILITIES = 2**24  # number to draw from at a time, 128 MB; a single sentence may exceed it


@dataclass(frozen=True, kw_only=True)
class Sampling(OutputOptions, PrefixStrategy):
    """Ancestral sampling: each token is drawn given those before it.

    A token is drawn from p ** (1 / temperature), restricted to the ``top_k`` best tokens if that is set, then to the
    nucleus: the fewest tokens that together have ``top_p`` of the probability (Holtzman et al. 2020, arXiv:1904.09751,
    sections 3.1 to 3.3). Log probabilities and scores are those of the unchanged model.

    A sample depends only on ``seed``, the source ids and the sample's number: not on the batch, its order or threads,
    nor on how many samples are drawn. Equal sources get equal samples.

    Samples come back best first, and may be equal.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    n_best: NBest = 1
    temperature: Annotated[  # log probabilities divided by the minimum are finite
        float, Range(1e-9, 100), Option("prefer more probable tokens below 1, and improbable ones above", 0.8)
    ] = 1.0
    top_k: Annotated[
        Annotated[int, Range(1, 2**20)] | None, Option("draw only from the N most probable tokens", 10)
    ] = None
    top_p: Annotated[
        float,
        Range(0, 1, open_low=True),
        Option("draw from the most probable tokens that together have this share of the probability", 0.9),
    ] = 1.0
    seed: Annotated[Seed, Option("the same seed gives the same samples", 1)] = 1

    def __call__(
        self, step_fn: StepFunction, src: Sentences, *, prefixes: Sentences | None = None
    ) -> list[list[Hypothesis]]:
        # Samples do not depend on the batch, so it can be cut where all tokens of all rows would take much memory.
        size = max(1, _PROBABILITIES // (step_fn.vocab_size * self.n_best))
        parts = [slice(start, start + size) for start in range(0, len(src), size)]
        return [
            samples
            for part in parts
            for samples in self._draw_batch(step_fn, src[part], None if prefixes is None else prefixes[part])
        ]

    def _draw_batch(self, step_fn: StepFunction, src: Sentences, prefixes: Sentences | None) -> list[list[Hypothesis]]:
        keys = [(sample, *ids) for ids in map(with_eos, src) for sample in range(self.n_best)]
        generators = [np.random.default_rng([self.seed, *key]) for key in keys]

        def choose(candidates: Candidates, live: NDArray[np.int64]) -> NDArray[np.int64]:
            draws = np.array([generators[row].random() for row in live])
            return _draw(candidates.tokens, self.weights(candidates.log_probs), draws)

        k = step_fn.vocab_size if self.top_k is None else self.top_k
        lists = write(step_fn, src, self, choose, prefixes=prefixes, k=k, copies=self.n_best)
        return [sorted(samples, key=lambda h: (h.truncated, -h.score)) for samples in lists]

    def weights(self, log_probs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Unnormalised probabilities for drawing candidates ``[rows, k]``; 0 if forbidden or excluded."""
        scaled = log_probs.astype(np.float64) / self.temperature
        best = scaled.max(axis=1, keepdims=True)
        weights = np.exp(scaled - np.where(np.isfinite(best), best, 0.0))
        if self.top_k is None and self.top_p == 1:
            return weights
        order = np.argsort(-weights, axis=1, kind="stable")
        ranked = np.take_along_axis(weights, order, axis=1)
        if self.top_k is not None:
            ranked[:, self.top_k :] = 0.0
        ends = np.cumsum(ranked, axis=1)
        ranked[:, 1:][ends[:, :-1] >= self.top_p * ends[:, -1:]] = 0.0
        np.put_along_axis(weights, order, ranked, axis=1)
        return weights


def _draw(tokens: NDArray[np.int64], weights: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """The candidates ``[rows]`` that ``draws`` from 0 to 1 select; ``tokens`` and ``weights`` are ``[rows, k]``.

    Candidates are laid out in the order of their ids, which is the same in every backend.
    """
    order = np.argsort(tokens, axis=1, kind="stable")
    ends = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    index = (ends <= draws[:, None] * ends[:, -1:]).sum(axis=1)
    index = np.minimum(index, tokens.shape[1] - 1)  # past the end if everything is forbidden
    return order[np.arange(len(order)), index]
