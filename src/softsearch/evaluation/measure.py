"""Measurement of systems on a test set: translations and all their metrics."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softsearch.errors import ConfigError
from softsearch.evaluation.bootstrap import Resamples, interval, resample
from softsearch.evaluation.by_length import score_by_length
from softsearch.evaluation.inference import BATCH_TOKENS, mean_nll
from softsearch.evaluation.metrics import LengthRatio, Metric, facts
from softsearch.evaluation.schema import MetricFacts, SystemReport, read_report
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText
from softsearch.machine import cores
from softsearch.search.batching import translate_ids
from softsearch.search.constraints import BannedTokens
from softsearch.search.ensemble import Ensemble
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.interface import Hypothesis, SearchStrategy, Sentences
from softsearch.text.corpus import read_lines
from softsearch.text.vocabulary import UNK

if TYPE_CHECKING:
    from softsearch.runtime.stages.terms import TermStage
    from softsearch.runtime.term_encoder import Required

ScoredSystem = tuple[SystemReport, dict[str, Resamples]]  # a system that translated earlier, with its resampled scores
ProgressBar = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]  # name, total if known


class Translations(NamedTuple):
    """The best translations of a test set."""

    hypotheses: list[Hypothesis]
    texts: list[str]
    seconds: float  # time of the search
    lacking: int = 0  # translations that lack a term of the glossary


class SystemScores(NamedTuple):
    """The part of a system's report that depends only on the translations."""

    values: dict[str, Any]  # fields of a SystemReport
    resampled: dict[str, Resamples]  # by metric, for paired tests


class SystemResult(NamedTuple):
    """One system on the test set."""

    report: SystemReport
    hypotheses: list[Hypothesis]  # the best hypothesis of each sentence
    warnings: list[str]
    resampled: dict[str, Resamples]


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Measures systems on one test set.

    Attributes:
        metrics: metrics for this text; the first also scores ranges of lengths, sentences without UNK and searches.
        dictionary: replaces unknown words; None keeps them.
        terms: what translations must contain, in the form that the models read and write; without text to copy.
    """

    text: HeldOutText
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    dictionary: Mapping[str, str] | None = None
    terms: "TermStage | None" = None
    progress: ProgressBar = lambda _name, _total: nullcontext(lambda _done: None)

    @property
    def sentence_metric(self) -> str:
        """The first metric that is meaningful for a single sentence, or else the first metric."""
        return next((name for name, metric in self.metrics.items() if metric.for_sentences), next(iter(self.metrics)))

    def facts(self) -> dict[str, MetricFacts]:
        """Facts about the report's metrics, including that of sentences without UNK."""
        described = facts(self.metrics)
        name, first = next(iter(described.items()))
        return described | {f"{name}_no_unk": replace(first, title=f"{first.title}, no UNK")}

    def measure(self, system: LabSystem, strategy: SearchStrategy, search: str) -> SystemResult:
        """Translates the test set and scores it; ``search`` describes ``strategy`` for the report.

        Raises:
            SoftsearchError: the search does not fit the system.
        """
        hypotheses, texts, seconds, lacking = self.translate(system, strategy)
        nll, no_nll = self._nll(system)
        scored = self.score(texts)
        no_unk = self._translate_without_unk(system, strategy, hypotheses)
        if no_unk is not None:
            name, metric = next(iter(self.metrics.items()))
            scored.values["scores"][f"{name}_no_unk"] = interval(metric, resample(metric, metric.table(*no_unk)))
        report = SystemReport(
            name=system.name,
            origin=system.origin,
            backend=system.backend,
            architecture=system.architecture,
            search=search,
            parameters=system.parameters,
            size_bytes=system.size_bytes,
            sentences_per_second=len(hypotheses) / seconds,
            tokens_per_second=sum(h.length for h in hypotheses) / seconds,
            nll=nll,
            no_unk_sentences=None if no_unk is None else len(no_unk[0]),
            **scored.values,
        )
        warnings = [f"{system.name} has no -log p of a reference token: {no_nll}"] if no_nll else []
        if lacking:
            what = "1 translation lacks" if lacking == 1 else f"{lacking:,} translations lack"
            warnings.append(f"{system.name}: {what} a term of the glossary")
        if cut := sum(hypothesis.truncated for hypothesis in hypotheses):
            share = f"{cut:,} of {len(hypotheses):,} translations"
            warnings.append(f"{system.name}: {share} {'was' if cut == 1 else 'were'} cut off at the length limit")
        return SystemResult(report, hypotheses, warnings, scored.resampled)

    def score(self, texts: list[str]) -> SystemScores:
        """Scores translations of the test set."""
        sources, references = self.text.lines
        tables = {name: metric.table(texts, references, sources) for name, metric in self.metrics.items()}
        resampled = {name: resample(self.metrics[name], table) for name, table in tables.items()}
        ratio = LengthRatio().for_text(self.text.text_form, self.text.tgt_lang)
        words = ratio.table(texts, references)
        first, for_sentences = next(iter(tables)), self.sentence_metric
        values = {
            "scores": {name: interval(self.metrics[name], found) for name, found in resampled.items()},
            "length_ratio": ratio.score(words.sum(axis=0)),
            "by_length": score_by_length(sources, self.metrics[first], tables[first], ratio, words),
            "hypotheses": texts,
            "sentence_scores": [self.metrics[for_sentences].sentence_score(row) for row in tables[for_sentences]],
        }
        return SystemScores(values, resampled)

    def translate(self, system: LabSystem, strategy: SearchStrategy) -> Translations:
        """Translates the sources."""
        src, _ = self.text.encode(system.tokenizers)
        # A bundle computes a batch on one core; PyTorch uses all cores for a batch.
        workers = cores() if system.backend == "onnx" else 1
        sources = self.text.sources_for(system.tokenizers[0])
        required = self._required(system, sources)
        with self.progress(system.name, len(src)) as advance:
            start = time.perf_counter()
            n_best_lists = translate_ids(
                system.step_fn,
                strategy,
                src,
                batch_tokens=BATCH_TOKENS,
                terms=[each.terms for each in required] or None,
                workers=workers,
                on_done=advance,
            )
            seconds = time.perf_counter() - start
        hypotheses = [n_best[0] for n_best in n_best_lists]
        texts = _texts(system, sources, src, hypotheses, self.dictionary)
        lacking = sum(bool(r.missing_in(found.tokens)) for r, found in zip(required, hypotheses, strict=False))
        return Translations(hypotheses, texts, seconds, lacking)

    def trace(self, system: LabSystem, strategy: SearchStrategy, sentences: Sequence[int]) -> list[dict[str, object]]:
        """Traces the search for some of the sentences, with their ``line`` numbers (``trace_parts``)."""
        if not sentences:
            return []
        from softsearch.runtime.stages.trace import trace_parts

        src, sources = self.text.encode(system.tokenizers)[0], self.text.sources_for(system.tokenizers[0])
        texts = [sources[index] for index in sentences]
        terms = [each.terms for each in self._required(system, texts)] or None
        found = trace_parts(system, strategy, texts, [src[index] for index in sentences], terms=terms)
        return [{"line": index + 1} | trace for index, trace in zip(sentences, found, strict=True)]

    def _required(self, system: LabSystem, sources: Sequence[str]) -> "list[Required]":
        """Returns what the translation of each source must contain; empty if there are no requirements."""
        if self.terms is None:
            return []
        from softsearch.runtime.term_encoder import TermEncoder

        encoder = TermEncoder(system.tokenizers[1], system.step_fn.vocab_size)
        return [encoder.require(self.terms.require(source)) for source in sources]

    def _translate_without_unk(
        self, system: LabSystem, strategy: SearchStrategy, hypotheses: Sequence[Hypothesis]
    ) -> tuple[list[str], list[str], list[str]] | None:
        """Translates the sentences without unknown words again; returns None if these are all or none.

        Bahdanau et al. 2015 (arXiv:1409.0473, table 1, note) did not let their models generate UNK when they scored
        these sentences, so all of them are translated again with UNK banned: UNK takes up room in the beam even if the
        best hypothesis has none. Subwords and characters are never UNK in training, so a model over them whose
        translations have no UNK is not run again. Returns translations, references and sources.
        """
        src, tgt = self.text.encode(system.tokenizers)
        indices = [i for i, pair in enumerate(zip(src, tgt, strict=True)) if not any(UNK in ids for ids in pair)]
        if not 0 < len(indices) < len(src):
            return None
        text = self.text.select(indices)
        tgt_tokenizer = system.tokenizers[1]
        if tgt_tokenizer.has_words or any(UNK in hypothesis.tokens for hypothesis in hypotheses):
            banned = replace(system, step_fn=BannedTokens(system.step_fn, [UNK]))
            return replace(self, text=text, dictionary=None).translate(banned, strategy).texts, *text.lines[::-1]
        return [tgt_tokenizer.decode(hypotheses[index].tokens) for index in indices], *text.lines[::-1]

    def _nll(self, system: LabSystem) -> tuple[float | None, str]:
        """Returns the mean -log p of a reference token, in nats, and ""; or None and the reason.

        With a shortlist it is nearly always infinite: words not on it have the probability 0.
        """
        step_fn = system.step_fn
        src, tgt = self.text.encode(system.tokenizers)
        if isinstance(step_fn, Ensemble) and not step_fn.is_distribution:
            return None, "the sums of its models' scores are not probabilities"
        scores = score_pairs(step_fn, src, tgt, batch_tokens=BATCH_TOKENS)
        if impossible := sum(math.isinf(score.log_prob) for score in scores):
            of = f"of {impossible:,} of {len(scores):,} references"
            return (None, f"it is infinite, because a word {of} has the probability 0, as words not on a shortlist do")
        return mean_nll(scores), ""


def _texts(
    system: LabSystem,
    sources: Sequence[str],
    src: Sentences,
    hypotheses: Sequence[Hypothesis],
    dictionary: Mapping[str, str] | None,
) -> list[str]:
    """Returns the texts of translations; with a dictionary, unknown words are replaced."""
    if dictionary is None:
        return [system.tokenizers[1].decode(hypothesis.tokens) for hypothesis in hypotheses]
    from softsearch.runtime.stages.unknown_words import with_known_words

    return with_known_words(system, sources, src, hypotheses, dictionary)


def read_translations(
    files: Sequence[str], evaluator: Evaluator, whole: int, taken: Collection[str]
) -> list[ScoredSystem]:
    """Reads and scores translations of the test set by other programs, a system for each file, named after it.

    ``whole`` is the number of sentences in the whole test set, of which the text to score may be the beginning;
    ``taken`` are names of other systems.

    Raises:
        ConfigError: the file has another number of lines.
        CorpusError: it cannot be read.
    """
    systems: list[ScoredSystem] = []
    text = evaluator.text
    for path in map(Path, files):
        lines = list(read_lines(path))
        if len(lines) not in (whole, len(text.sources)):
            raise ConfigError(
                f"hyp: {path} has {len(lines):,} lines, but the test set {text.name} has {whole:,} sentences; give one "
                "translation per line, in the order of the test set"
            )
        name = path.name.removesuffix(path.suffix) or path.name
        scored = evaluator.score(lines[: len(text.sources)])
        report = SystemReport(
            name=_unique(name, path.parent, [*taken, *(system.name for system, _ in systems)]),
            origin=str(path),
            backend="",
            architecture="",
            search="",
            parameters=None,
            size_bytes=None,
            sentences_per_second=None,
            tokens_per_second=None,
            nll=None,
            **scored.values,
        )
        systems.append((report, scored.resampled))
    return systems


def _unique(name: str, folder: Path, taken: Collection[str]) -> str:
    """Returns a name that is not ``taken``: with the name of its folder as a prefix, if need be."""
    while name in taken:
        name = f"{folder.resolve().name}: {name}"
    return name


def read_earlier(against: Path, evaluator: Evaluator, names: Collection[str]) -> list[ScoredSystem]:
    """Reads the systems of the report in the folder ``against``, without figures, and their scores for paired tests.

    Their translations are scored again, so that all scores of a metric have one signature.

    A system whose name is among ``names``, those in the new report, gets the name of its folder as a prefix.

    Raises:
        ConfigError: the report cannot be read, or is about another test set.
    """
    report, text, facts = read_report(against), evaluator.text, evaluator.facts()
    same_curve = [*report.metrics][:1] == [*facts][:1]
    if report.sources != text.sources or report.references != text.references:
        raise ConfigError(
            f"against={against} is about {report.test_set} ({len(report.sources):,} sentences), but this test set is "
            f"{text.name} ({len(text.sources):,}) and differs; set against to a report on the same text"
        )
    taken, systems = list(names), []
    for system in report.systems:
        name = _unique(system.name, against, taken)
        taken.append(name)
        scored = evaluator.score(system.hypotheses)
        kept = {key: score for key, score in system.scores.items() if key in facts}  # also those without UNK
        values = scored.values | {"scores": kept | scored.values["scores"]}
        curve = system.search_curve if same_curve else []
        systems.append(
            (replace(system, **values, name=name, heatmaps=[], traces=[], search_curve=curve), scored.resampled)
        )
    return systems
