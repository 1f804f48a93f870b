"""Metrics of translations, computed from sums of statistics of sentences: sacreBLEU's, our own, and users'.

A metric is a class in the config group ``metric``. Statistics are summed over sentences, so that corpus scores, scores
of single sentences, bootstrap intervals and paired tests all follow from two methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import sacrebleu.metrics
from numpy.typing import ArrayLike, NDArray
from sacrebleu.metrics.base import Metric as SacreBLEUMetric
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from softsearch.data.corpora.base import TextForm
from softsearch.errors import ConfigError
from softsearch.evaluation import sentence_scores
from softsearch.evaluation.schema import MetricFacts, SystemReport
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.units import tokenizer_for
from softsearch.ranges import AtLeastOne, Count
from softsearch.text.reading import as_read
from softsearch.text.vocabulary import LANGUAGE_TAG, without_tags

Table = NDArray[np.float64]


class Metric(ABC):
    """A score of translations, given one reference per sentence; subclass it for your own metric.

    Attributes:
        title: name in tables and figures.
        higher_is_better: the direction for early stopping, the best checkpoint, ranking and tests; None: neither, so
            the metric is only shown.
        limits: lowest and highest score.
        percent: whether a score is a share, from 0 to 1, and shown in per cent.
        for_sentences: whether scores of single sentences are meaningful; the report's page sorts by the first such
            metric.
        needs_sources: whether ``statistics`` takes the source sentences as its third argument.
        signature: how the score is computed, in one line; scores with different signatures are not comparable.
    """

    title: str = ""
    higher_is_better: bool | None = True
    limits: tuple[float, float] = (-inf, inf)
    percent: bool = False
    for_sentences: bool = True
    needs_sources: bool = False
    signature: str = ""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Returns statistics to sum over sentences, such as matches and words: ``[sentences, n]``."""

    @abstractmethod
    def score(self, sums: NDArray[np.float64]) -> float:
        """Returns the score of sentences with the summed statistics ``sums`` ``[n]``."""

    def sentence_score(self, statistics: NDArray[np.float64]) -> float:
        """Returns the score of one sentence from its row of statistics."""
        return self.score(statistics)

    def for_text(self, text_form: TextForm, tgt_lang: str) -> "Metric | None":
        """Returns this metric for a form of text and a language, such as with another tokenizer; None if unsuitable."""
        return self

    def can_score(self, references: Sequence[str]) -> bool:
        """Tells whether translations of these references can have different scores."""
        return True

    def corpus_score(self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()) -> float:
        """Returns the score of all sentences together."""
        return self.score(self.table(hypotheses, references, sources).sum(axis=0))

    def table(self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()) -> Table:
        """Returns the checked statistics; the tags of languages are removed from sources.

        Raises:
            ConfigError: a user's class does not return a row of finite numbers per sentence.
        """
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references, expected equal numbers")
        extra = [[without_tags(source)[0] for source in sources]] if self.needs_sources else []
        rows = np.asarray(self.statistics(list(hypotheses), list(references), *extra), dtype=np.float64)
        if rows.ndim != 2 or len(rows) != len(references) or not np.isfinite(rows).all():
            raise ConfigError(
                f"metric {type(self).__name__}: statistics() returned shape {list(rows.shape)} for {len(references)} "
                "sentences, expected [sentences, n] finite numbers; change the class"
            )
        return rows


class _SacreBLEU(Metric):
    """A metric of sacreBLEU."""

    limits = (0.0, 100.0)

    def __init__(self, title: str, own: SacreBLEUMetric) -> None:
        own.num_refs = 1  # a signature needs it before anything is scored
        self.title, self.own, self.signature = title, own, str(own.get_signature())

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Returns counts of matches and of possible matches."""
        return sentence_scores.statistics(self.own, hypotheses, references)

    def score(self, sums: NDArray[np.float64]) -> float:
        """Returns the score."""
        return sentence_scores.score(self.own, sums)


class BLEU(_SacreBLEU):
    """BLEU (Papineni et al. 2002, P02-1040), 0 to 100; for a single sentence with smoothing, and without empty orders.

    Args:
        tokenize: sacreBLEU's name of a tokenizer; None: ``none`` for ``lc_tok`` text, otherwise by language.
            ``flores200`` is spBLEU (Goyal et al. 2022, arXiv:2106.03193; NLLB Team 2022, arXiv:2207.04672).
        lowercase: score lower-cased text, as older papers do; not computed for text that is lower-cased anyway.

    Raises:
        ConfigError: there is no such tokenizer, it is not installed, or it cannot be downloaded.
    """

    for_sentences = False  # chrF is more informative

    def __init__(self, *, tokenize: str | None = None, lowercase: bool = False) -> None:
        names = sacrebleu.metrics.BLEU.TOKENIZERS
        if tokenize is not None and tokenize not in names:
            raise ConfigError(f"tokenize of BLEU is {tokenize!r}, expected null or one of {', '.join(names)}")
        self.tokenize, self.lowercase = tokenize, lowercase
        name = "spBLEU" if tokenize == "flores200" else "BLEU" + f", {tokenize}" * (tokenize is not None)
        corpus, self.sentence = (
            _own_bleu(lowercase=lowercase, tokenize=tokenize or "13a", effective_order=sentence)
            for sentence in (False, True)
        )
        title = name + ", lower-cased, tokenised" * lowercase
        super().__init__(title, corpus)

    def for_text(self, text_form: TextForm, tgt_lang: str) -> Metric | None:
        """Returns BLEU with the tokenizer for the text."""
        if self.lowercase and text_form == "lc_tok":
            return None
        bound = BLEU(tokenize=self.tokenize or tokenizer_for(text_form, tgt_lang), lowercase=self.lowercase)
        bound.title = self.title
        return bound

    def can_score(self, references: Sequence[str]) -> bool:
        """Tells whether any reference has four words: otherwise the product of precisions is 0, even for equal text."""
        return bool(self.table(references, references)[:, -1].any())

    def sentence_score(self, statistics: NDArray[np.float64]) -> float:
        """Returns smoothed BLEU, like ``sacrebleu.sentence_bleu``."""
        return sentence_scores.score(self.sentence, statistics)


def needs_download(node: Mapping[str, Any]) -> bool:
    """Tells whether a metric's config names a tokenizer whose model sacreBLEU would download."""
    model = SPM_MODELS.get(str(node.get("tokenize")))
    return model is not None and not _model_path(model).is_file()


def _model_path(model: Mapping[str, Any]) -> Path:
    return Path(SACREBLEU_DIR, "models", Path(model["url"]).name)


def _own_bleu(**options: Any) -> sacrebleu.metrics.BLEU:
    """Returns sacreBLEU's BLEU, which imports or downloads what the tokenizer needs."""
    try:
        return sacrebleu.metrics.BLEU(force=True, **options)
    except Exception as error:
        name, why = options["tokenize"], " ".join(str(error).split())
        lacks = f"needs MeCab and a dictionary; pip install 'sacrebleu[{name.partition('-')[0]}]'"
        if model := SPM_MODELS.get(name):
            lacks = f"needs {_model_path(model)} ({why}); download {model['url']} to that path"
        raise ConfigError(f"sacreBLEU's tokenizer {name} {lacks}") from error


class ChrF(_SacreBLEU):
    """chrF (Popovic 2015, W15-3049), 0 to 100; chrF++ with ``word_order=2``."""

    def __init__(self, *, char_order: AtLeastOne = 6, word_order: Count = 0, beta: AtLeastOne = 2) -> None:
        own = sacrebleu.metrics.CHRF(char_order=char_order, word_order=word_order, beta=beta)
        super().__init__("chrF" + "+" * word_order, own)


class TER(_SacreBLEU):
    """Translation edit rate (Snover et al. 2006), 0 to 100 and above.

    Args:
        case_sensitive: count a difference in case as an edit.
        tokenize: what is edited: ``tercom``: words; ``zh``: words, and Chinese characters one by one, as tercom does if
            told to; ``char``: characters; None: by language, words for ``lc_tok`` text.
    """

    higher_is_better = False
    limits = (0.0, inf)

    def __init__(
        self, *, case_sensitive: bool = False, tokenize: Literal["tercom", "zh", "char"] | None = None
    ) -> None:
        is_chinese = tokenize == "zh"
        # tercom splits into characters only if it also normalises
        own = sacrebleu.metrics.TER(is_chinese, asian_support=is_chinese, case_sensitive=case_sensitive)
        self.case_sensitive, self.tokenize = case_sensitive, tokenize
        super().__init__("TER", own)
        if tokenize == "char":
            self.signature = self.signature.replace("tok:tercom", "tok:char")

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Returns counts of edits and of words, or of characters, which are those of BLEU."""
        if self.tokenize == "char":
            hypotheses, references = ([" ".join(line) for line in side] for side in (hypotheses, references))
        return super().statistics(hypotheses, references)

    def for_text(self, text_form: TextForm, tgt_lang: str) -> Metric:
        """Returns TER by word or character."""
        name = self.tokenize or tokenizer_for(text_form, tgt_lang)
        tokenize: Literal["tercom", "zh", "char"] = "zh" if name == "zh" else "char" if name == "char" else "tercom"
        return TER(case_sensitive=self.case_sensitive, tokenize=tokenize)


class ExactMatch(Metric):
    """The share of translations equal to their references, except for white space and Unicode normalisation."""

    title, percent, limits = "exact match", True, (0.0, 1.0)

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Returns 1 for each equal translation, and the count 1."""
        return [(as_read(h).text == as_read(r).text, 1) for h, r in zip(hypotheses, references, strict=True)]

    def score(self, sums: NDArray[np.float64]) -> float:
        """Returns the share."""
        return float(sums[0] / sums[1])


class LengthRatio(Metric):
    """Words of the translations per word of the references, as BLEU counts them; 1 is ideal, so it cannot rank."""

    title, higher_is_better, percent, limits, for_sentences = "length ratio", None, True, (0.0, inf), False

    def __init__(self, *, tokenize: str | None = None) -> None:
        self.bleu = BLEU(tokenize=tokenize)
        self.signature = "|".join(self.bleu.signature.split("|")[3::2])  # tokenizer and version

    def for_text(self, text_form: TextForm, tgt_lang: str) -> "LengthRatio":
        """Returns the ratio of words by the tokenizer for the text."""
        return LengthRatio(tokenize=self.bleu.tokenize or tokenizer_for(text_form, tgt_lang))

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> ArrayLike:
        """Returns the numbers of words of both sides."""
        return self.bleu.table(hypotheses, references)[:, :2]

    def score(self, sums: NDArray[np.float64]) -> float:
        """Returns the ratio; 0 without references."""
        return float(sums[0] / sums[1]) if sums[1] else 0.0


class Scores(NamedTuple):
    """Corpus scores of one system on one test set."""

    values: dict[str, float]  # by metric name in the config
    signatures: dict[str, str]  # of metrics that have one
    facts: Mapping[str, MetricFacts]

    def prefixed(self, prefix: str) -> "Scores":
        """Returns the scores with ``prefix/`` before their names."""
        values = {f"{prefix}/{name}": value for name, value in self.values.items()}
        signatures = {f"{prefix}/{name}": text for name, text in self.signatures.items()}
        return self._replace(values=values, signatures=signatures)


def for_text(metrics: Mapping[str, Metric], text_form: TextForm, tgt_lang: str) -> dict[str, Metric]:
    """Returns the metrics that apply to a form of text and a target language, adapted to it.

    Raises:
        ConfigError: none applies.
    """
    every = {name: metric.for_text(text_form, tgt_lang) for name, metric in metrics.items()}
    bound = {name: metric for name, metric in every.items() if metric is not None}
    if not bound:
        raise ConfigError(f"metric: {', '.join(every)} cannot score {text_form} text; choose another, such as bleu")
    return bound


def facts(metrics: Mapping[str, Metric]) -> dict[str, MetricFacts]:
    """Returns what tables and pages need to know about metrics."""
    return {
        name: MetricFacts(
            metric.title or name.replace("_", " "),
            metric.higher_is_better,
            metric.percent,
            [limit if isfinite(limit) else None for limit in metric.limits],
        )
        for name, metric in metrics.items()
    }


def bleu_for(text_form: TextForm, tgt_lang: str) -> Metric:
    """Returns BLEU as in published scores for such text."""
    bleu = BLEU().for_text(text_form, tgt_lang)
    assert bleu is not None
    return bleu


def corpus_scores(
    metrics: Mapping[str, Metric], hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = ()
) -> Scores:
    """Scores detokenised translations, with one reference per sentence, by metrics for their text."""
    values = {name: metric.corpus_score(hypotheses, references, sources) for name, metric in metrics.items()}
    signatures = {name: metric.signature for name, metric in metrics.items() if metric.signature}
    return Scores(values, signatures, facts(metrics))


def with_languages(
    scores: Scores, hypotheses: Sequence[str], text: HeldOutText, loss: float | None, metrics: Mapping[str, Metric]
) -> Scores:
    """Adds scores of each language, such as ``de/bleu``, to the ``scores`` of a test set, and the loss.

    Tags at the start of sources name the languages; if there is only one, nothing is added for it.
    """
    by_language: dict[str, list[int]] = {}
    for index, source in enumerate(text.sources):
        if tag := LANGUAGE_TAG.match(source):
            by_language.setdefault(tag[1], []).append(index)
    values, signatures = dict(scores.values), dict(scores.signatures)
    for lang, indices in by_language.items() if len(by_language) > 1 else ():
        own = ([side[i] for i in indices] for side in (hypotheses, text.references, text.sources))
        part = corpus_scores(for_text(metrics, text.text_form, lang), *own).prefixed(lang)
        values |= part.values
        signatures |= part.signatures
    return Scores(values if loss is None else values | {"loss": loss}, signatures, scores.facts)


def report_metrics(report: SystemReport, text: HeldOutText, metrics: Mapping[str, Metric]) -> Scores:
    """Returns the measurements of an evaluation as metrics for ``metrics.json``."""
    bound = for_text(metrics, text.text_form, text.tgt_lang)
    values = {name: report.scores[name].value for name in bound}
    signatures = {name: metric.signature for name, metric in bound.items() if metric.signature}
    values |= {} if report.aer is None else {"aer": report.aer}
    return with_languages(Scores(values, signatures, facts(bound)), report.hypotheses, text, report.nll, metrics)
