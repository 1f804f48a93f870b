"""Corpus scores by sacreBLEU, each with the signature that says how it was computed."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.schema import SystemReport, plain_signature
from softsearch.evaluation.test_set import HeldOutText
from softsearch.text.vocabulary import LANGUAGE_TAG

_TOKENIZE = {"zh": "zh", "ja": "char"}  # languages without spaces between words; sacreBLEU's ja-mecab needs MeCab


class Scores(NamedTuple):
    """Corpus scores of one system on one test set."""

    values: dict[str, float]  # bleu, chrf, ter (each 0 to 100; lower is better for ter), exact_match (0 to 1)
    signatures: dict[str, str]

    def prefixed(self, prefix: str) -> "Scores":
        """The same with ``prefix/`` before each name."""
        values = {f"{prefix}/{name}": value for name, value in self.values.items()}
        return Scores(values, {f"{prefix}/{name}": text for name, text in self.signatures.items()})


def corpus_metrics(*, text_form: TextForm, tgt_lang: str, ter: bool = True) -> dict[str, Metric]:
    """BLEU, chrF and TER as in :func:`corpus_scores`; each needs to score something before it has a signature."""
    metrics: dict[str, Metric] = {"bleu": bleu_metric(text_form=text_form, tgt_lang=tgt_lang), "chrf": CHRF()}
    return metrics | ({"ter": TER()} if ter else {})


def bleu_metric(*, text_form: TextForm, tgt_lang: str, lowercase: bool = False) -> BLEU:
    """BLEU as in :func:`corpus_scores`; older papers lower-case plain text for it."""
    tokenize = "none" if text_form == "lc_tok" else _TOKENIZE.get(tgt_lang, "13a")
    return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, text_form: TextForm, tgt_lang: str, ter: bool = True
) -> Scores:
    """Scores detokenised translations against one reference each; ``ter`` takes longer than the other metrics.

    BLEU takes ``lc_tok`` text as it is (``tokenize=none``); the target language decides how plain text is tokenised.
    """
    values, signatures = {}, {}
    for name, metric in corpus_metrics(text_form=text_form, tgt_lang=tgt_lang, ter=ter).items():
        values[name] = metric.corpus_score(list(hypotheses), [list(references)]).score
        signatures[name] = str(metric.get_signature())
    same = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    values["exact_match"] = same / len(references)
    return Scores(values, signatures)


def language_scores(
    hypotheses: Sequence[str], lines: tuple[Sequence[str], Sequence[str]], *, text_form: TextForm
) -> Scores:
    """The scores of each language, as ``de/bleu``, where tags at the start of the sources ask for several.

    ``lines`` are sources and references; see :func:`corpus_scores`.
    """
    by_language: dict[str, list[int]] = {}
    for index, source in enumerate(lines[0]):
        if tag := LANGUAGE_TAG.match(source):
            by_language.setdefault(tag[1], []).append(index)
    scores = Scores({}, {})
    for lang, indices in by_language.items() if len(by_language) > 1 else ():
        own, expected = ([side[i] for i in indices] for side in (hypotheses, lines[1]))
        part = corpus_scores(own, expected, text_form=text_form, tgt_lang=lang).prefixed(lang)
        scores.values.update(part.values)
        scores.signatures.update(part.signatures)
    return scores


def report_metrics(report: SystemReport, text: HeldOutText) -> Scores:
    """The metrics of ``metrics.json`` as an evaluation has measured them, and those of each language."""
    by_language = language_scores(report.hypotheses, text.lines, text_form=text.text_form)
    own = {name: report.scores[name] for name in ("bleu", "chrf", "ter", "exact_match")}
    values = {name: score.value for name, score in own.items()} | by_language.values
    if report.nll is not None:
        values["loss"] = report.nll
    signatures = {name: plain_signature(own[name].signature) for name in ("bleu", "chrf", "ter")}
    return Scores(values, signatures | by_language.signatures)
