"""Measurement of systems on a test set: translations and all metrics of them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

from softsearch.evaluation.bootstrap import score_with_interval, sentence_chrf, share_with_interval
from softsearch.evaluation.by_length import length_ratio, score_by_length
from softsearch.evaluation.inference import BATCH_TOKENS, mean_nll
from softsearch.evaluation.metrics import bleu_metric, corpus_metrics
from softsearch.evaluation.schema import Score, SystemReport
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.system import System, translation_texts
from softsearch.search.batching import cores, translate_ids
from softsearch.search.constraints import Banned
from softsearch.search.ensemble import Ensemble
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.interface import Hypothesis, SearchStrategy
from softsearch.text.vocabulary import UNK

ProgressBar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]  # takes a name and a total


class Translations(NamedTuple):
    """The best translations of a test set."""

    hypotheses: list[Hypothesis]
    texts: list[str]
    seconds: float  # of the search


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Measures systems on one test set."""

    text: HeldOutText
    dictionary: Mapping[str, str] | None = None  # replaces unknown words; None leaves them as they are
    progress: ProgressBar = lambda _name, _total: nullcontext(lambda _done: None)

    def measure(
        self, system: System, strategy: SearchStrategy, search: str
    ) -> tuple[SystemReport, list[Hypothesis], list[str]]:
        """Translates the test set and scores it; ``search`` is ``strategy`` in words, for the report.

        Returns:
            The report, the best hypothesis of each sentence, and warnings.

        Raises:
            SoftsearchError: the search does not fit the system.
        """
        text = self.text
        hypotheses, texts, seconds = self.translate(system, strategy)
        bleu = bleu_metric(text_form=text.text_form, tgt_lang=text.tgt_lang)
        nll, no_nll = self._nll(system)
        no_unk = self._translate_without_unk(system, strategy, hypotheses)
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
            scores=self._scores(texts, no_unk),
            nll=nll,
            length_ratio=length_ratio(texts, text.references, bleu),
            by_length=score_by_length(text.sources, texts, text.references, bleu),
            hypotheses=texts,
            sentence_chrf=sentence_chrf(texts, text.references),
            no_unk_sentences=None if no_unk is None else len(no_unk[0]),
        )
        warnings = [f"{system.name} has no -log p of a reference token: {no_nll}"] if no_nll else []
        if cut := sum(hypothesis.truncated for hypothesis in hypotheses):
            warnings.append(
                f"{system.name}: {cut:,} translations were cut at the length limit, before the model ended them"
            )
        return report, hypotheses, warnings

    def translate(self, system: System, strategy: SearchStrategy) -> Translations:
        """Translates the sources."""
        src, _ = self.text.encode(system.tokenizers)
        # A bundle computes a batch on one core; PyTorch uses all cores for a batch.
        workers = cores() if system.backend == "onnx" else 1
        with self.progress(system.name, len(src)) as advance:
            start = time.perf_counter()
            n_best_lists = translate_ids(
                system.step_fn, strategy, src, batch_tokens=BATCH_TOKENS, workers=workers, on_done=advance
            )
            seconds = time.perf_counter() - start
        hypotheses = [n_best[0] for n_best in n_best_lists]
        return Translations(
            hypotheses, translation_texts(system, self.text.sources, src, hypotheses, self.dictionary), seconds
        )

    def _scores(self, hypotheses: list[str], no_unk: tuple[list[str], list[str]] | None) -> dict[str, Score]:
        text = self.text
        metrics = corpus_metrics(text_form=text.text_form, tgt_lang=text.tgt_lang)
        if text.text_form == "plain":
            metrics["bleu_lc"] = bleu_metric(text_form="plain", tgt_lang=text.tgt_lang, lowercase=True)
        scores = {name: score_with_interval(metric, hypotheses, text.references) for name, metric in metrics.items()}
        if no_unk is not None:
            scores["bleu_no_unk"] = score_with_interval(metrics["bleu"], *no_unk)
        same = [h == r for h, r in zip(hypotheses, text.references, strict=True)]
        return scores | {"exact_match": share_with_interval(same)}

    def _translate_without_unk(
        self, system: System, strategy: SearchStrategy, hypotheses: Sequence[Hypothesis]
    ) -> tuple[list[str], list[str]] | None:
        """Translations and references of the sentences without unknown words; None if these are all or none.

        Bahdanau et al. 2015 (arXiv:1409.0473, table 1, note) did not let their models write UNK when they scored these
        sentences, so all of them are translated again with UNK banned: a beam with UNK has less room for other words
        even if its best hypothesis has none. Subwords and characters are never UNK in training, so a model over them
        that wrote none is not asked again.
        """
        src, tgt = self.text.encode(system.tokenizers)
        indices = [i for i, pair in enumerate(zip(src, tgt, strict=True)) if not any(UNK in ids for ids in pair)]
        if not 0 < len(indices) < len(src):
            return None
        text = self.text.select(indices)
        tgt_tokenizer = system.tokenizers[1]
        if tgt_tokenizer.has_words or any(UNK in hypothesis.tokens for hypothesis in hypotheses):
            banned = replace(system, step_fn=Banned(system.step_fn, [UNK]))
            return replace(self, text=text, dictionary=None).translate(banned, strategy).texts, text.references
        return [tgt_tokenizer.decode(hypotheses[index].tokens) for index in indices], text.references

    def _nll(self, system: System) -> tuple[float | None, str]:
        """The mean -log p of a reference token, in nats, and ""; or None and the reason.

        With a shortlist it is nearly always infinite: words that are not on it have the probability 0.
        """
        step_fn = system.step_fn
        src, tgt = self.text.encode(system.tokenizers)
        if isinstance(step_fn, Ensemble) and not step_fn.is_distribution:
            return None, "the scores that its models add up are not probabilities"
        scores = score_pairs(step_fn, src, tgt, batch_tokens=BATCH_TOKENS)
        if impossible := sum(math.isinf(score.log_prob) for score in scores):
            of = f"of {impossible:,} of {len(scores):,} references"
            return None, f"it is infinite, because a word {of} has the probability 0, as one that a shortlist lacks"
        return mean_nll(scores), ""
