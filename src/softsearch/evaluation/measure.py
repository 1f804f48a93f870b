"""Measurement of one system on a test set: its translations and all metrics."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import NamedTuple

from softsearch.evaluation.bootstrap import score_with_interval, sentence_chrf, share_with_interval
from softsearch.evaluation.by_length import length_ratio, score_by_length
from softsearch.evaluation.inference import BATCH_TOKENS, reference_nll
from softsearch.evaluation.metrics import bleu_metric, corpus_metrics, lower_cased_bleu
from softsearch.evaluation.schema import Score, SystemReport
from softsearch.evaluation.test_set import HeldOutText, Ids
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.runtime.system import System, translation_texts
from softsearch.search.batching import translate_ids
from softsearch.search.ensemble import Ensemble
from softsearch.search.interface import Hypothesis, SearchStrategy
from softsearch.search.scoring import score_pairs
from softsearch.search.shortlisted import Banned
from softsearch.text.vocabulary import EOS, UNK

ProgressBar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]  # of a name and a total
_NO_UNK = "bleu_no_unk"


class Measurement(NamedTuple):
    """A system on a test set."""

    report: SystemReport
    hypotheses: list[Hypothesis]  # the best of each sentence
    warnings: list[str]


class Translations(NamedTuple):
    """The best translation of each sentence."""

    hypotheses: list[Hypothesis]
    texts: list[str]
    seconds: float  # of the search


@contextmanager
def no_progress(_name: str, _total: int) -> Iterator[Callable[[int], None]]:
    """Shows nothing."""
    yield lambda _: None


def measure(
    system: System,
    strategy: SearchStrategy,
    text: HeldOutText,
    *,
    search: str,
    dictionary: Mapping[str, str] | None = None,
    progress: ProgressBar = no_progress,
) -> Measurement:
    """Translates the test set and scores it.

    Args:
        system: what translates.
        strategy: how to search.
        text: the test set.
        search: ``strategy`` in words, for the report.
        dictionary: what replaces unknown words; None to leave them as they are.
        progress: shows how many sentences are translated.

    Raises:
        SoftsearchError: the search does not fit the system.
    """
    hypotheses, texts, seconds = translate_text(system, strategy, text, dictionary, progress)
    bleu = bleu_metric(text_form=text.text_form, tgt_lang=text.tgt_lang)
    no_unk = sentences_without_unk(system, text)
    nll, no_nll = _nll(system, text)
    scores = _scores(texts, text, _translate_without_unk(system, strategy, text, hypotheses, no_unk, progress))
    report = SystemReport(
        name=system.name,
        origin=system.origin,
        backend=system.backend,
        architecture=system.architecture,
        search=search,
        parameters=system.parameters,
        size_bytes=system.size_bytes,
        sentences_per_second=len(hypotheses) / seconds,
        tokens_per_second=sum(len(h.tokens) + (not h.truncated) for h in hypotheses) / seconds,
        scores=scores,
        nll=nll,
        length_ratio=length_ratio(texts, text.references, bleu),
        by_length=score_by_length(text.sources, texts, text.references, bleu),
        hypotheses=texts,
        sentence_chrf=sentence_chrf(texts, text.references),
        no_unk_sentences=len(no_unk) if _NO_UNK in scores else None,
    )
    warnings = [f"{system.name} has no -log p of a reference token: {no_nll}"] if no_nll else []
    if cut := sum(hypothesis.truncated for hypothesis in hypotheses):
        warnings.append(
            f"{system.name}: {cut:,} translations were cut at the length limit, before the model ended them"
        )
    return Measurement(report, hypotheses, warnings)


def translate_text(
    system: System,
    strategy: SearchStrategy,
    text: HeldOutText,
    dictionary: Mapping[str, str] | None = None,
    progress: ProgressBar = no_progress,
) -> Translations:
    """Translates the sources; ``dictionary`` replaces unknown words, see :func:`translation_texts`."""
    src, _ = text.encode(system.tokenizers)
    hypotheses, seconds = _search(system, strategy, src, progress)
    return Translations(hypotheses, translation_texts(system, text.sources, hypotheses, dictionary), seconds)


def _search(
    system: System, strategy: SearchStrategy, src: Ids, progress: ProgressBar
) -> tuple[list[Hypothesis], float]:
    """The best hypothesis of each source, and the seconds that it took."""
    # A bundle computes each batch on one core; PyTorch shares out the work of one batch itself.
    workers = len(os.sched_getaffinity(0)) if system.backend == "onnx" and hasattr(os, "sched_getaffinity") else 1
    sources = [[*ids, EOS] for ids in src]
    with progress(system.name, len(src)) as advance:
        start = time.perf_counter()
        n_best_lists = translate_ids(
            system.step_fn, strategy, sources, batch_tokens=BATCH_TOKENS, workers=workers, on_done=advance
        )
        seconds = time.perf_counter() - start
    return [n_best[0] for n_best in n_best_lists], seconds


def sentences_without_unk(system: System, text: HeldOutText) -> list[int]:
    """Indices of the sentences without unknown words in source and reference ("No UNK", Bahdanau et al. 2015)."""
    pairs = zip(*text.encode(system.tokenizers), strict=True)
    return [index for index, (src, tgt) in enumerate(pairs) if UNK not in src and UNK not in tgt]


def _translate_without_unk(
    system: System,
    strategy: SearchStrategy,
    text: HeldOutText,
    hypotheses: Sequence[Hypothesis],
    indices: Sequence[int],
    progress: ProgressBar,
) -> tuple[list[str], list[str]] | None:
    """Translations and references of the sentences without unknown words; None unless these are some, but not all.

    Bahdanau et al. 2015 (arXiv:1409.0473, table 1, note) did not let their models write UNK when they scored these
    sentences, so they are translated once more without it: all of them, because a beam with UNK has less room for
    other words, also where its best hypothesis has none. That leaves nothing for ``replace_unknown``. Subwords and
    characters are never UNK in training: a model over them that wrote none in the whole test set is not asked again.
    """
    if not 0 < len(indices) < len(hypotheses):
        return None
    src_ids, _ = text.encode(system.tokenizers)
    tgt_tokenizer = system.tokenizers[1]
    best = [hypotheses[index] for index in indices]
    if tgt_tokenizer.has_words or any(UNK in hypothesis.tokens for hypothesis in hypotheses):
        banned = replace(system, step_fn=Banned(system.step_fn, [UNK]))
        best, _ = _search(banned, strategy, [src_ids[index] for index in indices], progress)
    return [tgt_tokenizer.decode(hypothesis.tokens) for hypothesis in best], [text.references[i] for i in indices]


def _scores(
    hypotheses: list[str], text: HeldOutText, without_unk: tuple[list[str], list[str]] | None
) -> dict[str, Score]:
    metrics = corpus_metrics(text_form=text.text_form, tgt_lang=text.tgt_lang)
    scores = {name: score_with_interval(metric, hypotheses, text.references) for name, metric in metrics.items()}
    if text.text_form == "plain":
        scores["bleu_lc"] = score_with_interval(lower_cased_bleu(text.tgt_lang), hypotheses, text.references)
    if without_unk is not None:
        scores[_NO_UNK] = score_with_interval(metrics["bleu"], *without_unk)
    same = [h == r for h, r in zip(hypotheses, text.references, strict=True)]
    return scores | {"exact_match": share_with_interval(same)}


def _nll(system: System, text: HeldOutText) -> tuple[float | None, str]:
    """Mean -log p of a token of the references, EOS included, in nats, with all that the system translates with.

    Returns:
        The metric and "", or None and the reason why there is none. Under a shortlist it is nearly always infinite:
        words that are not on it have the probability 0, and few references do without any of them.
    """
    step_fn = system.step_fn
    src, tgt = text.encode(system.tokenizers)
    if isinstance(step_fn, Ensemble) and not step_fn.is_distribution:
        return None, "the scores that its models add up are not probabilities"
    if isinstance(step_fn, TorchStepFunction) and step_fn.shortlist is None:  # all tokens at once
        return reference_nll(step_fn.model, src, tgt), ""
    scores = score_pairs(step_fn, [[*ids, EOS] for ids in src], tgt, batch_tokens=BATCH_TOKENS)
    if impossible := sum(math.isinf(score.log_prob) for score in scores):
        share = f"{impossible:,} of {len(scores):,} references"
        return None, f"it is infinite, because a word of {share} has the probability 0, as one that a shortlist lacks"
    return -sum(score.log_prob for score in scores) / sum(len(score.token_log_probs) for score in scores), ""
