"""Corpus scores by sacreBLEU, with signatures that say how they were computed."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.schema import SystemReport, plain_signature
from softsearch.evaluation.test_set import HeldOutText
from softsearch.text.vocabulary import LANGUAGE_TAG

# Languages without spaces between words, by ISO 639; sacreBLEU's ja-mecab needs MeCab.
_TOKENIZE = dict.fromkeys(("zh", "cmn", "yue", "zho"), "zh") | dict.fromkeys(
    ("ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod"), "char"
)
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # their scripts


class Scores(NamedTuple):
    """Corpus scores of one system on one test set."""

    values: dict[str, float]  # bleu, chrf, ter (0 to 100; lower is better for ter), exact_match (0 to 1)
    signatures: dict[str, str]

    def prefixed(self, prefix: str) -> "Scores":
        """The scores with ``prefix/`` before their names."""
        values = {f"{prefix}/{name}": value for name, value in self.values.items()}
        return Scores(values, {f"{prefix}/{name}": text for name, text in self.signatures.items()})


def corpus_metrics(*, text_form: TextForm, tgt_lang: str, ter: bool = True) -> dict[str, Metric]:
    """BLEU, chrF and TER as in :func:`corpus_scores`; a metric has no signature before it has scored something."""
    metrics = {"bleu": bleu_metric(text_form=text_form, tgt_lang=tgt_lang), "chrf": CHRF()}
    split = text_form == "plain" and _primary(tgt_lang) in _TOKENIZE  # tercom does so only where it also normalises
    return metrics | ({"ter": TER(normalized=split, asian_support=split)} if ter else {})


def bleu_metric(*, text_form: TextForm, tgt_lang: str, lowercase: bool = False, effective_order: bool = False) -> BLEU:
    """BLEU as in :func:`corpus_scores`; older papers score lower-cased text, and single sentences need the latter."""
    tokenize = "none" if text_form == "lc_tok" else _TOKENIZE.get(_primary(tgt_lang), "13a")
    return BLEU(lowercase=lowercase, tokenize=tokenize, force=True, effective_order=effective_order)


def unsegmented(references: Sequence[str], *, text_form: TextForm, tgt_lang: str) -> str | None:
    """The problem of text without spaces whose language is not one of those: BLEU takes a sentence for a word."""
    text, words = "".join(references), sum(len(line.split()) for line in references)
    is_known = text_form == "lc_tok" or _primary(tgt_lang) in _TOKENIZE
    if is_known or len(text) < 5 * words or 2 * len(_UNSPACED.findall(text)) <= len(text):
        return None
    return f"the target language is {tgt_lang!r} and its text has no spaces, so that BLEU takes a sentence for a word"


def _primary(lang: str) -> str:
    """The language of a code with a region or a script: ``zh`` of ``zh-Hans``."""
    return re.split("[-_]", lang)[0]


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, text_form: TextForm, tgt_lang: str, ter: bool = True
) -> Scores:
    """Scores detokenised translations, with one reference per sentence; TER takes longer than the other metrics.

    BLEU takes ``lc_tok`` text as it is (``tokenize=none``) and tokenises plain text by its language; TER splits plain
    Chinese and Japanese into characters.
    """
    values, signatures = {}, {}
    for name, metric in corpus_metrics(text_form=text_form, tgt_lang=tgt_lang, ter=ter).items():
        values[name] = metric.corpus_score(list(hypotheses), [list(references)]).score
        signatures[name] = str(metric.get_signature())
    same = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    values["exact_match"] = same / len(references)
    return Scores(values, signatures)


def with_languages(scores: Scores, hypotheses: Sequence[str], text: HeldOutText, loss: float | None) -> Scores:
    """``scores`` of a whole test set with those of each language, as ``de/bleu``, and the loss.

    Tags at the start of the sources name the languages; fewer than two have no scores of their own.
    """
    by_language: dict[str, list[int]] = {}
    for index, source in enumerate(text.sources):
        if tag := LANGUAGE_TAG.match(source):
            by_language.setdefault(tag[1], []).append(index)
    values, signatures = dict(scores.values), dict(scores.signatures)
    for lang, indices in by_language.items() if len(by_language) > 1 else ():
        own, references = ([side[i] for i in indices] for side in (hypotheses, text.references))
        part = corpus_scores(own, references, text_form=text.text_form, tgt_lang=lang).prefixed(lang)
        values |= part.values
        signatures |= part.signatures
    return Scores(values if loss is None else values | {"loss": loss}, signatures)


def report_metrics(report: SystemReport, text: HeldOutText) -> Scores:
    """The metrics of ``metrics.json`` as an evaluation has measured them."""
    values = {name: report.scores[name].value for name in ("bleu", "chrf", "ter", "exact_match")}
    values |= {} if report.aer is None else {"aer": report.aer}
    signatures = {name: plain_signature(report.scores[name].signature) for name in ("bleu", "chrf", "ter")}
    return with_languages(Scores(values, signatures), report.hypotheses, text, report.nll)
