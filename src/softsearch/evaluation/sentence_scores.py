"""Everything that uses private names of sacreBLEU: chrF of all pairs of translations, and sums of statistics."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import CHRF
from sacrebleu.metrics.base import Metric

from softsearch.text.tokenizer import SentencePieceTokenizer


class PairwiseCHRF:
    """Computes ``metric.sentence_score`` of every pair of a candidate and a reference, 0 to 100.

    sacreBLEU extracts each text's n-grams once and computes the scores; only the matches are counted here, for all
    pairs together. The public methods of sacreBLEU extract the n-grams of both texts again for every pair, which took
    five times as long.
    """

    def __init__(self, metric: CHRF, tokenizer: SentencePieceTokenizer) -> None:
        self.metric, self.tokenizer = metric, tokenizer

    def __call__(self, candidates: Sequence[Sequence[int]], references: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Returns scores ``[candidates, references]``."""
        ours, theirs = self._ngrams(candidates), self._ngrams(references)
        sides = [[[ngrams[order] for ngrams in side] for side in (ours, theirs)] for order in range(self.metric.order)]
        statistics = np.stack([_statistics(*order) for order in sides], axis=2)
        rows = statistics.reshape(len(candidates) * len(references), -1).tolist()
        scores = [self.metric._compute_f_score(row) for row in rows]
        return np.array(scores).reshape(len(candidates), len(references))

    def _ngrams(self, sentences: Sequence[Sequence[int]]) -> list[list[Counter[str]]]:
        """Returns the n-grams of each sentence by order."""
        texts = [self.metric._preprocess_segment(self.tokenizer.decode(ids)) for ids in sentences]
        ngrams: list[list[Counter[str]]] = self.metric._extract_reference_info(texts)["ref_ngrams"]
        return ngrams


def _statistics(ours: Sequence[Counter[str]], theirs: Sequence[Counter[str]]) -> NDArray[np.int64]:
    """Returns counts ``[candidates, references, 3]``: n-grams of the candidate, of the reference, and common ones."""
    columns = {ngram: column for column, ngram in enumerate(dict.fromkeys(n for counter in theirs for n in counter))}
    there = _counts(theirs, columns)
    matches = [np.minimum(row, there).sum(axis=1) for row in _counts(ours, columns)]
    sizes = [np.array([counter.total() for counter in counters]) for counters in (ours, theirs)]
    # As in sacreBLEU, n-grams do not count if the reference is too short to have any.
    own = np.where(sizes[1] > 0, sizes[0][:, None], 0)
    return np.stack([own, np.broadcast_to(sizes[1], own.shape), np.stack(matches)], axis=2)


def _counts(counters: Sequence[Counter[str]], columns: dict[str, int]) -> NDArray[np.int32]:
    """Returns the counts of n-grams that have a column, ``[counters, columns]``."""
    table = np.zeros((len(counters), len(columns)), dtype=np.int32)
    for row, counter in zip(table, counters, strict=True):
        known = [(columns[ngram], count) for ngram, count in counter.items() if ngram in columns]
        if known:
            places, counts = zip(*known, strict=True)
            row[list(places)] = counts
    return table


def statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> list[list[float]]:
    """Returns the statistics of each sentence that ``metric`` sums."""
    rows: list[list[float]] = metric._extract_corpus_statistics(hypotheses, [references])
    return rows


def score(metric: Metric, sums: NDArray[np.float64]) -> float:
    """Returns the score of sentences with the summed statistics ``sums``."""
    return float(metric._compute_score_from_stats(sums.tolist()).score)
