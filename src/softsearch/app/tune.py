"""Weights of ensembles, language models and rerankers, and length penalties, for the best BLEU on a validation set."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from omegaconf import DictConfig, OmegaConf
from rich.table import Table
from sacrebleu.metrics.base import Metric

from softsearch.app.config.validation import check, plain
from softsearch.app.console import plain_console, progress
from softsearch.app.systems.open import open_any, open_systems
from softsearch.app.systems.reranking import build_search, is_rerank
from softsearch.app.systems.texts import read_test_set
from softsearch.app.systems.weights_file import Tuned, option_key, typed_options
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import BATCH_TOKENS
from softsearch.evaluation.measure import translate_text
from softsearch.evaluation.metrics import corpus_metrics
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.system import System, combine
from softsearch.search.batching import plan_batches
from softsearch.search.ensemble import AVERAGES
from softsearch.search.interface import StepFunction
from softsearch.search.rerank import Rerank, Scored, length_of, weighted_scores
from softsearch.search.tuning import Point, Trial, best_of, coordinate_search
from softsearch.text.option_checks import require_choice, require_int
from softsearch.text.vocabulary import EOS
from softsearch.training.cpu_memory import keep_freed_memory

# A point of an ensemble costs a search of the whole validation set, one of a reranker a look at scores that are there.
LENGTH_PENALTIES = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5)
LANGUAGE_MODEL = (0.0, 0.05, 0.1, 0.2, 0.3)
MEMBER = (0.0, 0.5, 1.0, 2.0)  # times the first one's
FINE_LENGTH_PENALTIES = tuple(round(0.1 * i, 1) for i in range(21))
SCORER = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
_MOST_RERANKINGS = 2000


def tune(config: DictConfig) -> None:
    """Tunes, prints what helped and writes ``weights.json`` to the run's folder.

    With ``search=rerank`` the sentences are searched once, and the weights of the searching model and of each of
    ``search.models`` are tuned; else those of the ensemble of all systems and of the language model. Either way the
    length penalty is tuned too.

    Raises:
        SoftsearchError: a model or the text cannot be read, or an option is wrong.
    """
    keep_freed_memory()
    options = plain(config)
    check(options["search"], "search")
    require_choice("ensemble", options["ensemble"], AVERAGES)
    require_int("searches", options["searches"], at_least=1)
    if not isinstance(options["weights"], list | None):
        raise ConfigError(f"weights={options['weights']}: expected a list to start from, as in '[0.6,0.4]'")
    systems = open_systems(options["ckpt"], options["bundle"], options["average"])
    path = options["language_model"]
    language_model = None if path is None else open_any([path])[0]
    files = None if options["test"] is None else (Path(options["test"][0]), Path(options["test"][1]))
    text = read_test_set(
        config.get("data"), files, systems, split=options["split"], cache_dir=Path(options["cache_dir"])
    )
    text = _first(text, options["sentences"])
    tuner = _Tuner(config, options, systems, language_model, text)
    began = time.perf_counter()
    trials = tuner.rerank() if is_rerank(config.search) else tuner.ensemble()
    _show(trials, text, time.perf_counter() - began)
    out = Path(options["run_dir"]) / "weights.json"
    tuned = tuner.tuned(trials)
    tuned.save(out)
    command = shlex.join(["python", "src/evaluate.py", f"weights={out}", *_rest_of_search(tuned)])
    plain_console().print(f"weights: {out}\nnext: {command}", soft_wrap=True, highlight=False)


class _Tuner:
    """One tuning: which coordinates there are, and what a point is worth."""

    def __init__(
        self,
        config: DictConfig,
        options: Mapping[str, Any],
        systems: Sequence[System],
        language_model: System | None,
        text: HeldOutText,
    ) -> None:
        self.config, self.options, self.systems, self.language_model = config, options, systems, language_model
        self.text = text
        self.bleu: Metric = corpus_metrics(text_form=text.text_form, tgt_lang=text.tgt_lang)["bleu"]
        self.search = dict(options["search"])
        given = options["weights"]
        self.start: Point = {
            "ensemble": options["ensemble"],
            "language_model_weight": float(options["language_model_weight"]),
            **_numbered("weights", [1.0] * len(systems) if given is None else given),
        }

    def ensemble(self) -> list[Trial]:
        """Searches anew with each combination."""
        self._combined(self.start)  # refuses wrong weights before anything is searched for
        grids: dict[str, Sequence[Any]] = {}
        if "length_penalty" in self.search:
            grids["length_penalty"] = LENGTH_PENALTIES
            self.start["length_penalty"] = float(self.search["length_penalty"])
        if self.language_model is not None:
            grids["language_model_weight"] = LANGUAGE_MODEL
        if len(self.systems) > 1:
            grids["ensemble"] = AVERAGES
            first = self.start["weights[0]"] or 1.0
            grids |= {f"weights[{i}]": [first * ratio for ratio in MEMBER] for i in range(1, len(self.systems))}
        if not grids:
            raise ConfigError("there is nothing to tune: one model, no language_model, and a search without a length")
        return coordinate_search(self.start, grids, self._of_ensemble, most=self.options["searches"])

    def rerank(self) -> list[Trial]:
        """Searches once, and ranks what was found anew with each combination."""
        system = self._combined(self.start)
        strategy = cast(Rerank, build_search(self.config.search, system.tokenizers))
        lists = _candidates(strategy, system, self.text)
        objective = RerankObjective(lists, system.tokenizers[1].decode, self._score)
        scores = _numbered("search.weights", strategy.weights)
        self.start |= {**scores, "length_penalty": strategy.length_penalty}
        grids = {"length_penalty": FINE_LENGTH_PENALTIES, **dict.fromkeys(scores, SCORER)}
        return coordinate_search(self.start, grids, objective, most=_MOST_RERANKINGS)

    def tuned(self, trials: Sequence[Trial]) -> Tuned:
        """The best point, as the file has it."""
        best = best_of(trials)
        search: dict[str, Any] = {"_target_": self.search["_target_"]}
        if "length_penalty" in best.point:
            search["length_penalty"] = best.point["length_penalty"]
        if is_rerank(self.config.search):
            search |= {name: self.search[name] for name in ("models", "proposers")}
            search["weights"] = _values("search.weights", best.point)
        language_model = self.options["language_model"] if best.point["language_model_weight"] > 0 else None
        together = len(self.systems) > 1 or language_model is not None
        return Tuned(
            ckpt=_listed(self.options["ckpt"]),
            bundle=_listed(self.options["bundle"]),
            average=self.options["average"],
            ensemble=best.point["ensemble"] if together else None,
            weights=_values("weights", best.point) if together else None,
            language_model=language_model,
            language_model_weight=0.0 if language_model is None else best.point["language_model_weight"],
            search=search,
            validation={
                "text": self.text.name,
                "sentences": len(self.text.sources),
                "bleu": best.value,
                "bleu_at_start": trials[0].value,
                "signature": str(self.bleu.get_signature()),
            },
        )

    def _combined(self, point: Point) -> System:
        weights = _values("weights", point)
        return combine(self.systems, point["ensemble"], weights, self.language_model, point["language_model_weight"])

    def _of_ensemble(self, point: Point) -> float:
        if not any(_values("weights", point)):
            return -np.inf
        system = self._combined(point)
        node = OmegaConf.create(self.search | {k: v for k, v in point.items() if k == "length_penalty"})
        strategy = build_search(node, system.tokenizers)
        value = self._score(translate_text(system, strategy, self.text, progress=progress).texts)
        plain_console().print(f"BLEU {value:.2f} with {_say(point)}", soft_wrap=True, highlight=False)
        return value

    def _score(self, hypotheses: list[str]) -> float:
        return float(self.bleu.corpus_score(hypotheses, [self.text.references]).score)


class RerankObjective:
    """What a point is worth, of n-best lists whose scores are known.

    Args:
        lists: the candidates of each sentence, the searching model's best first; none is empty.
        decode: makes text of a translation.
        score: the corpus score of one text for each sentence.
    """

    def __init__(
        self,
        lists: Sequence[Sequence[Scored]],
        decode: Callable[[Sequence[int]], str],
        score: Callable[[list[str]], float],
    ) -> None:
        flat = [scored for n_best in lists for scored in n_best]
        self.texts = [decode(scored.hypothesis.tokens) for scored in flat]
        self.log_probs = np.array([scored.log_probs for scored in flat])  # [candidates, models]
        self.lengths = np.array([length_of(scored.hypothesis) for scored in flat])
        ends = np.cumsum([len(n_best) for n_best in lists])
        self.spans = list(zip(ends - [len(n_best) for n_best in lists], ends, strict=True))
        # As Rerank has it: what the length limit cut off has a chance only where nothing ended.
        ended = np.array([not scored.hypothesis.truncated for scored in flat])
        self.eligible = np.concatenate([ended[a:b] | ~ended[a:b].any() for a, b in self.spans])
        self.score = score

    def __call__(self, point: Point) -> float:
        """Scores the translations that the point prefers."""
        weights = _values("search.weights", point)
        return self.score(self.preferred(weights, point["length_penalty"])) if any(weights) else -np.inf

    def preferred(self, weights: Sequence[float], length_penalty: float) -> list[str]:
        """The text of the best candidate of each sentence."""
        scores = weighted_scores(self.log_probs, self.lengths, weights, length_penalty)
        scores = np.where(self.eligible, scores, -np.inf)
        return [self.texts[a + int(scores[a:b].argmax())] for a, b in self.spans]


def _candidates(strategy: Rerank, system: System, text: HeldOutText) -> list[list[Scored]]:
    ids = [[*source, EOS] for source in text.encode(system.tokenizers)[0]]
    lists: list[list[Scored]] = [[] for _ in ids]
    step_fn: StepFunction = system.step_fn
    for batch in plan_batches([len(source) for source in ids], BATCH_TOKENS):
        for place, scored in zip(batch, strategy.candidates(step_fn, [ids[i] for i in batch]), strict=True):
            lists[place] = scored
    return lists


def _first(text: HeldOutText, sentences: int | None) -> HeldOutText:
    if sentences is None:
        return text
    require_int("sentences", sentences, at_least=1)
    return replace(text, sources=text.sources[:sentences], references=text.references[:sentences])


def _rest_of_search(tuned: Tuned) -> list[str]:
    """What was typed of the search and is not in the file: the same search needs it again."""
    keys = [(typed, option_key(typed).partition(".")) for typed in typed_options()]
    return [typed for typed, (group, _, key) in keys if group == "search" and key not in tuned.search]


def _numbered(name: str, values: Sequence[Any]) -> Point:
    return {f"{name}[{place}]": value for place, value in enumerate(values)}


def _values(name: str, point: Point) -> list[float]:
    return [value for key, value in point.items() if key.rpartition("[")[0] == name]


def _listed(paths: str | list[str] | None) -> list[str]:
    return [] if paths is None else [paths] if isinstance(paths, str) else paths


def _say(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _show(trials: Sequence[Trial], text: HeldOutText, seconds: float) -> None:
    """The start and each point that was better than all before it."""
    table = Table("BLEU", "change", title=f"{text.name}, {len(text.sources):,} sentences")
    best = trials[0]
    table.add_row(f"{best.value:.2f}", "the start: " + _say(best.point))
    for trial in trials[1:]:
        if trial.value > best.value:
            changed = {name: value for name, value in trial.point.items() if value != best.point[name]}
            table.add_row(f"{trial.value:.2f}", _say(changed))
            best = trial
    console = plain_console()
    console.print(table)
    console.print(f"{len(trials):,} points in {seconds:,.0f} s; the best: {_say(best.point)}", soft_wrap=True)
