"""Search curve: quality, time and search errors of several searches with one model."""

from collections.abc import Mapping, Sequence

import numpy as np

from softsearch.evaluation.bootstrap import Resamples, p_value, resample
from softsearch.evaluation.measure import Evaluator
from softsearch.evaluation.metrics import LengthRatio
from softsearch.evaluation.schema import SearchPoint
from softsearch.evaluation.systems import LabSystem
from softsearch.search.interface import Hypothesis, SearchStrategy
from softsearch.search.options import SearchOptions

_TOLERANCE = 1e-4  # nats; differences of the same translation between batches are smaller


def search_curve(
    evaluator: Evaluator,
    system: LabSystem,
    searches: Mapping[str, SearchStrategy],
    options: SearchOptions,
    own: Resamples | None = None,
) -> tuple[list[SearchPoint], list[str]]:
    """Returns a point for each search, by name, and warnings where exact search gave up.

    ``options`` has the length penalty of the scores; ``own`` is the quality of the report's search.
    """
    points, warnings = [], []
    metric = next(iter(evaluator.metrics.values()))
    ratio = LengthRatio().for_text(evaluator.text.text_form, evaluator.text.tgt_lang)
    results = {name: evaluator.translate(system, strategy) for name, strategy in searches.items()}
    errors = search_errors([result.hypotheses for result in results.values()])
    for (name, (hypotheses, texts, seconds, _)), error_share in zip(results.items(), errors, strict=True):
        scores = [options.score(h.log_prob, h.length) for h in hypotheses]
        quality = resample(metric, metric.table(texts, evaluator.text.references, evaluator.text.sources))
        points.append(
            SearchPoint(
                name=name,
                quality=quality.value,
                mean_log_prob=float(np.mean([h.log_prob for h in hypotheses])),
                mean_score=float(np.mean(scores)),
                seconds=seconds,
                empty=float(np.mean([not h.tokens for h in hypotheses])),
                search_errors=error_share,
                length_ratio=ratio.corpus_score(texts, evaluator.text.references),
                p_value=None
                if own is None or np.array_equal(own.resamples, quality.resamples)
                else p_value(quality, own),
            )
        )
        if unproven := sum(hypothesis.optimal is False for hypothesis in hypotheses):
            share = f"{unproven:,} of {len(hypotheses):,} sentences"
            warnings.append(f"{system.name}: {name} search did not finish for {share}; there may be better ones")
    return points, warnings


def search_errors(searches: Sequence[Sequence[Hypothesis]]) -> list[float] | list[None]:
    """Returns the share of search errors of each search, from its best hypotheses; None if there is only one search.

    A translation is a search error if another of the searches found one with a higher log probability (Stahlberg &
    Byrne 2019, arXiv:1908.10090, section 3); only with exact search among them are all errors found. A translation cut
    off at the length limit has no probability, and is an error if any other one is complete.
    """
    if len(searches) < 2:
        return [None] * len(searches)
    log_probs = np.array([[-np.inf if h.truncated else h.log_prob for h in hypotheses] for hypotheses in searches])
    return (log_probs < log_probs.max(axis=0) - _TOLERANCE).mean(axis=1).tolist()
