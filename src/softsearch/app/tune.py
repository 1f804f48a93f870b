"""Weights of ensembles, language models and rerankers, and length penalties, for the best BLEU on a validation set."""

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, cast

import optuna
from omegaconf import DictConfig, OmegaConf
from optuna.samplers import TPESampler
from rich.table import Table

from softsearch.app.config.options import Tune
from softsearch.app.config.validation import check
from softsearch.app.console import plain_console, progress, say
from softsearch.app.systems.open import open_any, open_systems, path_list
from softsearch.app.systems.search import build_search, is_rerank
from softsearch.app.systems.texts import read_test_set
from softsearch.app.systems.weights_file import Tuned, option_key, typed_options
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import BATCH_TOKENS
from softsearch.evaluation.measure import Evaluator
from softsearch.evaluation.metrics import Metric, bleu_for
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.system import System, combine
from softsearch.search.batching import translate_ids
from softsearch.search.ensemble import AVERAGES
from softsearch.search.interface import SearchStrategy
from softsearch.search.rerank import Rerank, ScoredHypothesis, ranked

# A point of an ensemble costs a search of the validation set; a point of a reranker only reorders its n-best lists.
LENGTH_PENALTIES = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5)
LANGUAGE_MODEL = (0.0, 0.05, 0.1, 0.2, 0.3)
MEMBER = (0.0, 0.5, 1.0, 2.0)  # times the first one's
FINE_LENGTH_PENALTIES = tuple(round(0.1 * i, 1) for i in range(21))
SCORER = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
_RERANKINGS = 200
_SEED = 1

Point = dict[str, Any]  # the value of each option
Trials = list[tuple[Point, float]]


class Problem(NamedTuple):
    """A tuning problem."""

    start: Point
    grids: Mapping[str, Sequence[Any]]  # the values of the options that are tuned; the others stay as at the start
    bleu: Callable[[Point], float]
    trials: int  # at most


@dataclass(frozen=True)
class Models:
    """The models of an ensemble, and the text that they are tuned on."""

    start: Point  # the given options of the ensemble
    systems: Sequence[System]
    language_model: System | None
    text: HeldOutText
    metric: Metric

    def combined(self, point: Point) -> System:
        """The ensemble with the options of a point."""
        weights = _values("weights", point)
        return combine(self.systems, point["ensemble"], weights, self.language_model, point["language_model_weight"])

    def bleu(self, texts: Sequence[str]) -> float:
        """BLEU of one translation per sentence."""
        return self.metric.corpus_score(texts, self.text.references)


def tune(options: Tune) -> None:
    """Tunes, prints what helped and writes ``weights.json`` to the run's folder.

    With ``search=rerank`` the sentences are searched once, and the weights of the searching model and of
    ``search.models`` are tuned; otherwise those of the ensemble of all systems and of the language model. The length
    penalty is always tuned too.

    Raises:
        SoftsearchError: a model or the text cannot be read, or an option is wrong.
    """
    check(OmegaConf.to_container(options.search, resolve=True), "search")
    systems = open_systems(options.ckpt, options.bundle, options.average)
    language_model = None if options.language_model is None else open_any([str(options.language_model)])[0]
    text = read_test_set(options, options.test, systems)
    text = replace(text, sources=text.sources[: options.sentences], references=text.references[: options.sentences])
    metric = bleu_for(text.text_form, text.tgt_lang)
    start = {"ensemble": options.ensemble, "language_model_weight": float(options.language_model_weight)}
    start |= _numbered("weights", [1.0] * len(systems) if options.weights is None else options.weights)
    models = Models(start, systems, language_model, text, metric)
    problem = _reranker(models, options) if is_rerank(options.search) else _ensemble(models, options)
    began = time.perf_counter()
    trials = maximize(problem)
    _show(trials, text, time.perf_counter() - began)
    out = options.run_dir / "weights.json"
    validation = {"text": text.name, "sentences": len(text.sources), "signature": metric.signature}
    tuned = _tuned(options, trials, validation)
    tuned.save(out)
    # The same search also needs the options that were typed and are not in the file.
    typed = {option: option_key(option) for option in typed_options()}
    rest = [option for option, key in typed.items() if key.split(".")[0] == "search" and key not in tuned.options]
    say(f"weights: {out}\nnext: {shlex.join(['python', 'src/evaluate.py', f'weights={out}', *rest])}")


def maximize(problem: Problem) -> Trials:
    """Tries the start, every option alone, and points of Optuna's TPE sampler; or all points if they are few.

    Returns:
        Different points and their BLEU, in the order of trying.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    grids = {name: sorted({*grid, problem.start[name]}) for name, grid in problem.grids.items()}
    points = math.prod(map(len, grids.values()))
    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=_SEED))
    tried: dict[tuple[int, ...], tuple[Point, float]] = {}

    def objective(trial: optuna.Trial) -> float:
        key = tuple(trial.suggest_int(name, 0, len(grid) - 1) for name, grid in grids.items())
        if key not in tried:
            point = problem.start | {name: grid[index] for (name, grid), index in zip(grids.items(), key, strict=True)}
            tried[key] = point, problem.bleu(point)
        if len(tried) == min(points, problem.trials):
            study.stop()
        return tried[key][1]

    start = {name: grid.index(problem.start[name]) for name, grid in grids.items()}
    queue = [start, *(start | {name: index} for name, grid in grids.items() for index in range(len(grid)))]
    if points < problem.trials:
        queue += [dict(zip(grids, key, strict=True)) for key in product(*(range(len(grid)) for grid in grids.values()))]
    for indices in queue:
        study.enqueue_trial(indices, skip_if_exists=True)
    study.optimize(objective, n_trials=4 * problem.trials)  # the sampler may repeat a point
    return list(tried.values())


def _ensemble(models: Models, options: Tune) -> Problem:
    """The problem of an ensemble, which translates the text at every point."""
    start, search = dict(models.start), options.search
    models.combined(start)  # refuses wrong weights before the first search
    grids: dict[str, Sequence[Any]] = {}
    if "length_penalty" in search:
        grids["length_penalty"] = LENGTH_PENALTIES
        start["length_penalty"] = float(search.length_penalty)
    if models.language_model is not None:
        grids["language_model_weight"] = LANGUAGE_MODEL
    if len(models.systems) > 1:
        grids["ensemble"] = AVERAGES
        first = start["weights[0]"] or 1.0
        grids |= {f"weights[{i}]": [first * ratio for ratio in MEMBER] for i in range(1, len(models.systems))}
    if not grids:
        raise ConfigError("there is nothing to tune: one model, no language_model, and a search without a length")

    def bleu(point: Point) -> float:
        if not any(_values("weights", point)):
            return -math.inf
        system = models.combined(point)
        node = DictConfig({**search, **{k: v for k, v in point.items() if k == "length_penalty"}})
        strategy = build_search(node, system.tokenizers)
        value = models.bleu(Evaluator(text=models.text, progress=progress).translate(system, strategy).texts)
        say(f"BLEU {value:.2f} with {_describe(point)}")
        return value

    return Problem(start, grids, bleu, options.searches)


def _reranker(models: Models, options: Tune) -> Problem:
    """The problem of a reranker, whose n-best lists are written and scored once."""
    system = models.combined(models.start)
    strategy = cast(Rerank, build_search(options.search, system.tokenizers))
    ids, _ = models.text.encode(system.tokenizers)
    search = cast(SearchStrategy, strategy.candidates)
    lists: Any = translate_ids(system.step_fn, search, ids, batch_tokens=BATCH_TOKENS)
    choose = choice_of_best(lists, system.tokenizers[1].decode)

    def bleu(point: Point) -> float:
        weights = _values("search.weights", point)
        return models.bleu(choose(weights, point["length_penalty"])) if any(weights) else -math.inf

    scores = _numbered("search.weights", strategy.weights)
    start = models.start | scores | {"length_penalty": strategy.length_penalty}
    return Problem(start, {"length_penalty": FINE_LENGTH_PENALTIES} | dict.fromkeys(scores, SCORER), bleu, _RERANKINGS)


def choice_of_best(
    lists: Sequence[Sequence[ScoredHypothesis]], decode: Callable[[Sequence[int]], str]
) -> Callable[[Sequence[float], float], list[str]]:
    """A function from weights and a length penalty to the texts that :class:`Rerank` would return."""
    texts = [[decode(scored.hypothesis.tokens) for scored in n_best] for n_best in lists]

    def choose(weights: Sequence[float], length_penalty: float) -> list[str]:
        best = [ranked(n_best, weights, length_penalty)[0][0] for n_best in lists]
        return [candidates[index] for candidates, index in zip(texts, best, strict=True)]

    return choose


def _tuned(options: Tune, trials: Trials, validation: Mapping[str, Any]) -> Tuned:
    """The content of the file: the best point, the first of equals."""
    best, bleu = max(trials, key=lambda trial: trial[1])
    language_model = str(options.language_model) if best["language_model_weight"] > 0 else None
    weights = _values("weights", best)
    together = len(weights) > 1 or language_model is not None
    reranks = is_rerank(options.search)
    return Tuned(
        ckpt=path_list(options.ckpt),
        bundle=path_list(options.bundle),
        average=options.average,
        ensemble=best["ensemble"] if together else None,
        weights=weights if together else None,
        language_model=language_model,
        language_model_weight=0.0 if language_model is None else best["language_model_weight"],
        search=options.search["_target_"],
        length_penalty=best.get("length_penalty"),
        search_models=list(options.search.models) if reranks else None,
        search_proposers=list(options.search.proposers) if reranks else None,
        search_weights=_values("search.weights", best) if reranks else None,
        validation={**validation, "bleu": bleu, "bleu_at_start": trials[0][1]},
    )


def _numbered(name: str, values: Sequence[Any]) -> Point:
    return {f"{name}[{index}]": value for index, value in enumerate(values)}


def _values(name: str, point: Point) -> list[float]:
    return [value for key, value in point.items() if key.rpartition("[")[0] == name]


def _describe(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _show(trials: Trials, text: HeldOutText, seconds: float) -> None:
    """Prints the start and every point that was better than all before it."""
    table = Table("BLEU", "change", title=f"{text.name}, {len(text.sources):,} sentences")
    (best, highest), *others = trials
    table.add_row(f"{highest:.2f}", "the start: " + _describe(best))
    for point, bleu in others:
        if bleu > highest:
            change = {name: value for name, value in point.items() if value != best[name]}
            table.add_row(f"{bleu:.2f}", _describe(change))
            best, highest = point, bleu
    plain_console().print(table)
    say(f"{len(trials):,} points in {seconds:,.0f} s; the best: {_describe(best)}")
