"""The search curve: quality, time and search errors of several searches with one model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softsearch.evaluation.schema import SearchPoint
from softsearch.search.interface import Hypothesis
from softsearch.search.options import SearchOptions

_TOLERANCE = 1e-4  # nats; the same translation in another batch differs by less


class SearchResult(NamedTuple):
    """One search on the whole test set, with the best hypothesis of each sentence."""

    name: str
    hypotheses: list[Hypothesis]
    seconds: float
    bleu: float


def search_points(results: Sequence[SearchResult], options: SearchOptions) -> list[SearchPoint]:
    """Compares searches with one model by their translations.

    A translation is a search error if another of the searches found one that the model gives a higher log probability
    (Stahlberg & Byrne 2019, arXiv:1908.10090, section 3; with exact search among them these are all errors, else the
    known ones). What was cut at the length limit, and so has no probability, is an error if any other is whole.
    ``options`` have the length penalty of the scores.
    """
    log_probs = np.array([[-np.inf if h.truncated else h.log_prob for h in result.hypotheses] for result in results])
    best = log_probs.max(axis=0)
    points = []
    for result, own in zip(results, log_probs, strict=True):
        scores = [options.score(h.log_prob, len(h.tokens) + (not h.truncated)) for h in result.hypotheses]
        points.append(
            SearchPoint(
                name=result.name,
                bleu=result.bleu,
                mean_log_prob=float(np.mean([h.log_prob for h in result.hypotheses])),
                mean_score=float(np.mean(scores)),
                seconds=result.seconds,
                empty=float(np.mean([not h.tokens for h in result.hypotheses])),
                search_errors=float(np.mean(own < best - _TOLERANCE)) if len(results) > 1 else None,
            )
        )
    return points
