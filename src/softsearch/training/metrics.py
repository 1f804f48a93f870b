"""Corpus scores by sacreBLEU, each with the signature that says how it was computed."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER

from softsearch.data.sources.base import TextForm

_TOKENIZE = {"zh": "zh", "ja": "char"}  # languages without spaces between words; sacreBLEU's ja-mecab needs MeCab


class Scores(NamedTuple):
    """Scores of one system on one test set."""

    values: dict[str, float]  # bleu, chrf, ter (each 0 to 100; lower is better for ter), exact_match (0 to 1)
    signatures: dict[str, str]


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, text_form: TextForm, tgt_lang: str, ter: bool = True
) -> Scores:
    """Scores translations against one reference each.

    Args:
        hypotheses: detokenised translations.
        references: as long as ``hypotheses``.
        text_form: ``lc_tok`` text is tokenised already, and BLEU takes it as it is (``tokenize=none``).
        tgt_lang: ISO code of the target language; decides how plain text is tokenised.
        ter: compute the translation edit rate too, which takes longer than the others.
    """
    tokenize = "none" if text_form == "lc_tok" else _TOKENIZE.get(tgt_lang, "13a")
    metrics = {"bleu": BLEU(tokenize=tokenize, force=True), "chrf": CHRF()} | ({"ter": TER()} if ter else {})
    values, signatures = {}, {}
    for name, metric in metrics.items():
        values[name] = metric.corpus_score(list(hypotheses), [list(references)]).score
        signatures[name] = str(metric.get_signature())
    same = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    values["exact_match"] = same / len(references)
    return Scores(values, signatures)
