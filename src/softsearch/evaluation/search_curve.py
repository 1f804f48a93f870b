"""The search curve: quality, time and search errors of several searches with one model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from softsearch.evaluation.measure import ProgressBar, no_progress, translate_text
from softsearch.evaluation.metrics import bleu_metric
from softsearch.evaluation.schema import SearchPoint, SystemReport
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.system import System
from softsearch.search.interface import Hypothesis, SearchOptions, SearchStrategy

_TOLERANCE = 1e-4  # nats; the same translation in another batch differs by less


class SearchResult(NamedTuple):
    """One search on the whole test set."""

    name: str
    hypotheses: list[Hypothesis]  # the best of each sentence
    seconds: float
    bleu: float


def add_search_curve(
    report: SystemReport,
    system: System,
    searches: Mapping[str, SearchStrategy],
    options: SearchOptions,
    text: HeldOutText,
    *,
    dictionary: Mapping[str, str] | None = None,
    progress: ProgressBar = no_progress,
) -> tuple[SystemReport, list[str]]:
    """Adds other searches of the same sentences to a report.

    Args:
        report: of the system.
        system: what translates.
        searches: by their names in the report.
        options: the length penalty of the scores.
        text: the test set.
        dictionary: what replaces unknown words; None to leave them as they are.
        progress: shows how many sentences are translated.

    Returns:
        The report, and a warning where exact search has given up.
    """
    bleu, results, warnings = bleu_metric(text_form=text.text_form, tgt_lang=text.tgt_lang), [], []
    for name, strategy in searches.items():
        hypotheses, texts, seconds = translate_text(system, strategy, text, dictionary, progress)
        score = float(bleu.corpus_score(texts, [text.references]).score)
        results.append(SearchResult(name, hypotheses, seconds, score))
        if unproven := sum(hypothesis.optimal is False for hypothesis in hypotheses):
            share = f"{unproven:,} of {len(hypotheses):,} sentences"
            warnings.append(f"{system.name}: {name} search did not come to an end for {share}; there may be better")
    return replace(report, search_curve=search_points(results, options)), warnings


def search_points(results: Sequence[SearchResult], options: SearchOptions) -> list[SearchPoint]:
    """Compares searches with one model by their translations.

    A translation is a search error if another of the searches found one that the model gives a higher log probability
    (Stahlberg & Byrne 2019, arXiv:1908.10090, section 3; with exact search among them these are all errors, else the
    known ones). What was cut at the length limit, and so has no probability, is an error if any other is whole.

    Args:
        results: of the same sentences.
        options: the length penalty of the scores.
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
