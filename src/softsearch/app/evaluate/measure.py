"""One system on one test set: its translations, and what there is to say about them."""

import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import hydra.utils
import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape
from rich.progress import Progress

from softsearch.app.config.instantiate import build
from softsearch.app.console import plain_console
from softsearch.app.systems.reranking import is_rerank
from softsearch.app.systems.test_set import HeldOutText
from softsearch.errors import ConfigError
from softsearch.evaluation.bootstrap import score_with_interval, sentence_chrf, share_with_interval
from softsearch.evaluation.by_length import length_ratio, score_by_length
from softsearch.evaluation.inference import BATCH_TOKENS, reference_nll
from softsearch.evaluation.metrics import bleu_metric, corpus_metrics, lower_cased_bleu
from softsearch.evaluation.schema import Score, SystemReport
from softsearch.evaluation.search_curve import Searched, search_points
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.runtime.system import System, translation_texts
from softsearch.search.batching import translate_ids
from softsearch.search.ensemble import Ensemble
from softsearch.search.interface import Hypothesis, SearchOptions, SearchStrategy
from softsearch.search.scoring import score_pairs
from softsearch.search.shortlisted import Banned
from softsearch.text.vocabulary import EOS, UNK

_SEARCHES = {
    "greedy": "softsearch.search.greedy.Greedy",
    "beam": "softsearch.search.beam.BeamSearch",
    "exact": "softsearch.search.exact.ExactSearch",
}
_NO_UNK = "bleu_no_unk"


class Measured(NamedTuple):
    """What a system did."""

    report: SystemReport
    found: list[Hypothesis]  # the best of each sentence
    warnings: list[str]


def measure(
    system: System,
    search: DictConfig,
    strategy: SearchStrategy,
    text: HeldOutText,
    dictionary: Mapping[str, str] | None = None,
) -> Measured:
    """Translates the test set and scores it.

    Args:
        system: what translates.
        search: the config of ``strategy``, for the report.
        strategy: how to search.
        text: the test set.
        dictionary: what replaces unknown words; None to leave them as they are.

    Raises:
        SoftsearchError: the search does not fit the system.
    """
    found, seconds = translate(system, strategy, text.sources)
    hypotheses = translation_texts(system, text.sources, found, dictionary)
    bleu = bleu_metric(text_form=text.text_form, tgt_lang=text.tgt_lang)
    known = known_sentences(system, text)
    nll, no_nll = _nll(system, text)
    scores = _scores(hypotheses, text, _without_unk(system, strategy, text, found, known))
    report = SystemReport(
        name=system.name,
        origin=system.origin,
        backend=system.backend,
        architecture=system.architecture,
        search=describe_search(search),
        parameters=system.parameters,
        size_bytes=system.size_bytes,
        sentences_per_second=len(found) / seconds,
        tokens_per_second=sum(map(_length, found)) / seconds,
        scores=scores,
        nll=nll,
        length_ratio=length_ratio(hypotheses, text.references, bleu),
        by_length=score_by_length(text.sources, hypotheses, text.references, bleu),
        hypotheses=hypotheses,
        sentence_chrf=sentence_chrf(hypotheses, text.references),
        no_unk_sentences=int(known.sum()) if _NO_UNK in scores else None,
    )
    warnings = [f"{system.name} has no -log p of a reference token: {no_nll}"] if no_nll else []
    return Measured(report, found, warnings)


def with_curve(
    report: SystemReport,
    system: System,
    curve: Sequence[object],
    search: DictConfig,
    text: HeldOutText,
    dictionary: Mapping[str, str] | None = None,
) -> tuple[SystemReport, list[str]]:
    """Adds other searches of the same sentences: ``curve`` has ``greedy``, ``exact`` and the widths of beams.

    Args:
        report: what :func:`measure` said of the system.
        system: what translates.
        curve: see above.
        search: the config of the search whose options the others take over.
        text: the test set.
        dictionary: what replaces unknown words; None to leave them as they are.

    Returns:
        The report, and a warning where exact search has given up.

    Raises:
        ConfigError: ``curve`` has something else.
    """
    bleu, warnings = bleu_metric(text_form=text.text_form, tgt_lang=text.tgt_lang), []
    searches = []
    for name, node in curve_searches(curve, search).items():
        found, seconds = translate(system, build(node), text.sources)
        hypotheses = translation_texts(system, text.sources, found, dictionary)
        score = float(bleu.corpus_score(hypotheses, [text.references]).score)
        searches.append(Searched(name, found, seconds, score))
        if unproven := sum(hypothesis.optimal is False for hypothesis in found):
            share = f"{unproven:,} of {len(found):,} sentences"
            warnings.append(f"{system.name}: {name} search did not come to an end for {share}; there may be better")
    keys = ("length_penalty", "length_norm")
    node = _beam_of(search)
    options = SearchOptions(**{key: node[key] for key in keys if key in node})
    return replace(report, search_curve=search_points(searches, options)), warnings


def curve_searches(curve: Sequence[object], search: DictConfig) -> dict[str, DictConfig]:
    """The searches of ``curve`` with the options of ``search`` that they have too, by name.

    Raises:
        ConfigError: an entry is no search.
    """
    options = OmegaConf.to_container(_beam_of(search), resolve=True)
    assert isinstance(options, dict)
    nodes = {}
    for entry in curve:
        is_beam = isinstance(entry, int) and not isinstance(entry, bool) and entry >= 1
        if not is_beam and entry not in ("greedy", "exact"):
            raise ConfigError(
                f"curve has {entry!r}, expected greedy, exact or a beam width, as in '[greedy,2,5,exact]'"
            )
        target = _SEARCHES["beam" if is_beam else str(entry)]
        known = inspect.signature(hydra.utils.get_class(target)).parameters
        own = {str(key): value for key, value in options.items() if key in known and key != "n_best"}
        if is_beam:
            own["beam"] = entry
        nodes[f"beam {entry}" if is_beam else str(entry)] = OmegaConf.create({**own, "_target_": target})
    return nodes


def _beam_of(search: DictConfig) -> DictConfig:
    """The search, or of a reranker the one that finds its n-best lists."""
    return search.search if is_rerank(search) else search


def known_sentences(system: System, text: HeldOutText) -> NDArray[np.bool_]:
    """Which sentences have no unknown word in the source and in the reference ("No UNK", Bahdanau et al. 2015)."""
    sides = zip(system.tokenizers, text.lines, strict=True)
    unknown = [[UNK in tokenizer.encode(line) for line in lines] for tokenizer, lines in sides]
    return np.array([not any(pair) for pair in zip(*unknown, strict=True)])


def describe_search(search: Mapping[str, Any]) -> str:
    """A search's config in words, as in "beam 5, length penalty 1.0", without limits and usual values."""
    target = str(search["_target_"])
    kind = next((name for name, path in _SEARCHES.items() if path == target), target.rpartition(".")[2])
    usual = {name: p.default for name, p in inspect.signature(hydra.utils.get_method(target)).parameters.items()}
    words = [f"{kind} {search['beam']}" if kind == "beam" else kind]
    for key, value in search.items():
        left_out = key in ("_target_", "beam", "max_length_factor", "max_length_offset") or isinstance(value, Mapping)
        if not left_out and (value != usual.get(key) or key == "length_penalty"):
            words.append(f"{str(key).replace('_', ' ')} {value}")
    return ", ".join(words)


def translate(system: System, strategy: SearchStrategy, lines: Sequence[str]) -> tuple[list[Hypothesis], float]:
    """The best hypothesis of each line, and the seconds that search took."""
    ids = [[*system.tokenizers[0].encode(line), EOS] for line in lines]
    # A bundle computes each batch on one core; PyTorch shares out the work of one batch itself.
    workers = len(os.sched_getaffinity(0)) if system.backend == "onnx" and hasattr(os, "sched_getaffinity") else 1
    console = plain_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(system.name), total=len(ids))
        start = time.perf_counter()
        found = translate_ids(
            system.step_fn,
            strategy,
            ids,
            batch_tokens=BATCH_TOKENS,
            workers=workers,
            on_done=lambda done: bar.advance(task, done),
        )
        seconds = time.perf_counter() - start
    return [n_best[0] for n_best in found], seconds


def _length(hypothesis: Hypothesis) -> int:
    return len(hypothesis.tokens) + (not hypothesis.truncated)


def _without_unk(
    system: System,
    strategy: SearchStrategy,
    text: HeldOutText,
    found: Sequence[Hypothesis],
    known: NDArray[np.bool_],
) -> tuple[list[str], list[str]] | None:
    """Translations and references of the ``known`` sentences; None unless these are some, but not all.

    Bahdanau et al. 2015 (arXiv:1409.0473, table 1, note) did not let their models write UNK when they scored these
    sentences, so they are translated once more without it: all of them, because a beam with UNK has less room for
    other words, also where its best hypothesis has none. That leaves nothing for ``replace_unknown``. Subwords and
    characters are never UNK in training: a model over them that wrote none in the whole test set is not asked again.
    """
    places: list[int] = np.flatnonzero(known).tolist()
    if not 0 < len(places) < len(found):
        return None
    tgt_tokenizer = system.tokenizers[1]
    best = [found[place] for place in places]
    if tgt_tokenizer.has_words or any(UNK in hypothesis.tokens for hypothesis in found):
        banned = replace(system, step_fn=Banned(system.step_fn, [UNK]))
        best, _ = translate(banned, strategy, [text.sources[place] for place in places])
    return [tgt_tokenizer.decode(hypothesis.tokens) for hypothesis in best], [text.references[i] for i in places]


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
        The figure and "", or None and the reason why there is none. Under a shortlist it is nearly always infinite:
        words that are not on it have the probability 0, and few references do without any of them.
    """
    step_fn = system.step_fn
    if isinstance(step_fn, Ensemble) and not step_fn.is_distribution:
        return None, "the scores that its models add up are not probabilities"
    if isinstance(step_fn, TorchStepFunction) and step_fn.shortlist is None:  # all tokens at once
        return reference_nll(step_fn.model, system.tokenizers, text.lines), ""
    src, tgt = (
        [tokenizer.encode(line) for line in lines]
        for tokenizer, lines in zip(system.tokenizers, text.lines, strict=True)
    )
    scored = score_pairs(step_fn, [[*ids, EOS] for ids in src], tgt, batch_tokens=BATCH_TOKENS)
    if impossible := sum(math.isinf(pair.log_prob) for pair in scored):
        share = f"{impossible:,} of {len(scored):,} references"
        return None, f"it is infinite, because a word of {share} has the probability 0, as one that a shortlist lacks"
    return -sum(pair.log_prob for pair in scored) / sum(len(pair.token_log_probs) for pair in scored), ""
