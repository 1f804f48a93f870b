"""Checks of the text of test and validation sets: what makes scores mislead, in warnings."""

import re
from collections.abc import Mapping, Sequence

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.metrics import TOKENIZE, Metric, primary

_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # their scripts


def unsegmented(references: Sequence[str], *, text_form: TextForm, tgt_lang: str) -> str | None:
    """The problem of text without spaces whose language is not one of those: BLEU takes a sentence for a word."""
    text, words = "".join(references), sum(len(line.split()) for line in references)
    is_known = text_form == "lc_tok" or primary(tgt_lang) in TOKENIZE
    if is_known or len(text) < 5 * words or 2 * len(_UNSPACED.findall(text)) <= len(text):
        return None
    return f"the target language is {tgt_lang!r} and its text has no spaces, so that BLEU takes a sentence for a word"


def without_scores(metrics: Mapping[str, Metric], references: Sequence[str]) -> list[str]:
    """Warnings of metrics that are the same for any translations of these references."""
    unable = [metric.title for metric in metrics.values() if not metric.can_score(references)]
    return [f"no reference has four words, so that {' and '.join(unable)} is 0 for any translation"] if unable else []
