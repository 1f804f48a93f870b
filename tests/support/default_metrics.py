"""The metrics of configs/train.yaml and configs/evaluate.yaml, as objects."""

from collections.abc import Mapping, Sequence

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation import metrics
from softsearch.evaluation.metrics import BLEU, TER, ChrF, ExactMatch, Metric

METRICS: Mapping[str, Metric] = {"bleu": BLEU(), "chrf": ChrF(), "ter": TER(), "exact_match": ExactMatch()}
EVALUATED: Mapping[str, Metric] = {**METRICS, "bleu_lc": BLEU(lowercase=True)}


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, text_form: TextForm, tgt_lang: str
) -> metrics.Scores:
    """Scores by the default metrics."""
    return metrics.corpus_scores(metrics.for_text(METRICS, text_form, tgt_lang), hypotheses, references)
