"""``tune``: finds weights of ensembles, language models and rerankers, and search options, for the best BLEU.

It is a sweep in one process: models are opened once, and a trial is a search, or a reranking of n-best lists.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import optuna
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BruteForceSampler
from optuna.trial import TrialState

from softsearch.app import (
    TunedWeights,
    build,
    check,
    echo,
    flatten,
    nearest,
    open_any,
    open_systems,
    option_key,
    path_list,
    plain,
    progress,
    quoted,
    read_test_set,
    rerank,
    search_maker,
    shell_command,
    target_of,
    typed_options,
)
from softsearch.errors import ConfigError
from softsearch.evaluation import HeldOutText
from softsearch.evaluation.parts import Evaluator, LabSystem, bleu_for, lab_ensemble, text_problems
from softsearch.extras.sweep.options import Tune
from softsearch.extras.sweep.study import Plan
from softsearch.extras.sweep.sweep import run_study
from softsearch.extras.sweep.trial import TrialFailed, override, suggest
from softsearch.search import Rerank, SearchStrategy, translate_ids
from softsearch.search.parts import ScoredHypothesis, ranked

_BATCH_TOKENS = 1024
_RERANKINGS = 200  # largest number of trials of a reranker
_NOT_ALWAYS = ("weights", "ensemble", "language_model_weight", "search.weights", "search.length_penalty")

Point = Mapping[str, Any]  # options of evaluate by key; elements of lists have keys such as weights[1]


@dataclass(frozen=True)
class Models:
    """Models, and the text to tune them on."""

    options: Tune
    systems: Sequence[LabSystem]
    language_model: LabSystem | None
    text: HeldOutText
    lists: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # the latest n-best lists to rerank

    def start(self) -> Point:
        """Returns the options that can be tuned, with their given values."""
        options = self.options
        point = {f"search.{key}": v for key, v in flatten(plain(options.search)) if isinstance(v, str | int | float)}
        if _is_rerank(options.search):
            return point | _numbered("search.weights", self.numbers("search.weights", {}))
        if len(self.systems) > 1:
            point |= {"ensemble": options.ensemble, **_numbered("weights", self.numbers("weights", {}))}
            del point["weights[0]"]  # only ratios to it matter
        return point | ({"language_model_weight": options.language_model_weight} if self.language_model else {})

    def numbers(self, name: str, point: Point) -> list[float]:
        """Returns the weights at a point, for the ensemble (``weights``) or for the reranker (``search.weights``).

        Raises:
            TrialFailed: all weights are 0.
        """
        search, given = self.options.search, self.options.weights
        count = len(self.systems)
        if name == "search.weights":
            given, count = search.weights, 1 + len(search.models)
        found = [point.get(f"{name}[{i}]", float(x)) for i, x in enumerate(given or [1.0] * count)]
        if point and not any(found):
            raise TrialFailed(f"all of {name} are 0")
        return found

    def combined(self, point: Point) -> LabSystem:
        """Returns the ensemble with the options of a point."""
        own = {"ensemble": self.options.ensemble, "language_model_weight": self.options.language_model_weight, **point}
        weights = self.numbers("weights", point)
        return lab_ensemble(self.systems, own["ensemble"], weights, self.language_model, own["language_model_weight"])

    def translate(self, point: Point) -> list[str]:
        """Translates the text with the options of a point."""
        system, node = self.combined(point), DictConfig({"search": self.options.search})
        changes = {key: value for key, value in point.items() if key.startswith("search.") and "[" not in key}
        if not _is_rerank(self.options.search):
            for key, value in changes.items():
                OmegaConf.update(node, key, value)
            strategy = search_maker(node.search)(system.tokenizers, system.max_length_factor)
            return Evaluator(text=self.text, progress=progress).translate(system, strategy).texts
        weights, length_penalty = self.numbers("search.weights", point), changes.pop("search.length_penalty")
        for key, value in changes.items():
            OmegaConf.update(node, key, value)
        if (same := tuple(changes.items())) not in self.lists:
            self.lists.clear()
            reranked = search_maker(node.search)(system.tokenizers, system.max_length_factor)
            search = cast(SearchStrategy, cast(Rerank, reranked).candidates)
            ids, _ = self.text.encode(system.tokenizers)
            self.lists[same] = translate_ids(system.step_fn, search, ids, batch_tokens=_BATCH_TOKENS)
        return best_texts(self.lists[same], weights, length_penalty, system.tokenizers[1].decode)


def tune(options: Tune) -> None:
    """Tunes, prints all points, best first, and writes them and ``weights.json`` to the run's folder.

    The options of ``space`` that the models and the search have are tuned; with ``search=rerank`` the sentences are
    searched only once, and the ensemble is not changed. The start is tried first, then every single value, then points
    from the sampler; if there are few points, all are tried.

    Raises:
        SoftsearchError: a model or the text cannot be read, or an option is wrong.
    """
    check(OmegaConf.to_container(options.search, resolve=True), "search")
    check(
        OmegaConf.to_container(options.sweep, resolve=True), "sweep", given=("trials", "space", "fixed", "objectives")
    )
    systems = open_systems(options.ckpt, options.bundle, options.average)
    language_model = None if options.language_model is None else open_any([str(options.language_model)])[0]
    text = read_test_set(options, options.test, systems)
    text = text.select(range(len(text.sources))[: options.sentences])
    metric = bleu_for(text.text_form, text.tgt_lang)
    for problem in text_problems(text, systems, {"bleu": metric}):
        echo(f"warning: {problem}")
    models = Models(options, systems, language_model, text)
    models.combined({})  # to refuse wrong weights before the first search
    start = models.start()
    grids = _grids(options, start)
    plan = _plan(options, grids)

    def objective(trial: optuna.Trial, plan: Plan) -> list[float]:
        drawn = {name: suggest(trial, name, space) for name, space in plan.space.items()}
        return [metric.corpus_score(models.translate({**start, **drawn}), text.references)]

    middle = {name: start[name] for name in grids}
    first = [middle, *(middle | {name: value} for name, grid in grids.items() for value in grid)]
    trials = [t for t in run_study(plan, objective, first) if t.state is TrialState.COMPLETE]
    if not trials:
        raise ConfigError(f"sweep.timeout={options.sweep.timeout} ended before any point was tried; set a longer time")
    best = max(trials, key=lambda trial: trial.values)
    scores = {"bleu": best.value, "bleu_at_start": trials[0].value, "signature": metric.signature}
    tuned = _tuned(models, {**start, **best.params}, {"text": text.name, "sentences": len(text.sources), **scores})
    out = options.run_dir / "weights.json"
    tuned.save(out)
    # The same search also needs the typed options that are not in the file.
    typed = {option: option_key(option) for option in typed_options()}
    rest = [option for option, key in typed.items() if key.split(".")[0] == "search" and key not in tuned.options]
    command = shell_command(["softsearch", "evaluate", f"weights={quoted(str(out))}", *rest])
    echo(f"weights: {out}\nnext: {command}")
    if not _is_rerank(options.search):
        words = [override(key, value) for key, value in tuned.options.items() if key.startswith("search.")]
        echo(f"to recommend the same search in a bundle: softsearch export {shell_command(words)} ...")


def _grids(options: Tune, start: Point) -> dict[str, list[Any]]:
    """Returns the values of each option to tune, in order.

    Raises:
        ConfigError: ``space`` has an option that the search does not have, or none that can be tuned.
    """
    space = {key: value for key, value in flatten(options.space) if isinstance(value, list)}
    names = {name: name.partition("[")[0] for name in start}
    for key in space:
        if key not in (*names.values(), *_NOT_ALWAYS):
            raise ConfigError(f"space.{key} is not an option that can be tuned; {nearest(key, names.values())}")
    grids = {name: [*space[key], start[name]] for name, key in names.items() if key in space}
    for name, grid in grids.items():
        if len({isinstance(value, str) for value in grid}) > 1:
            raise ConfigError(
                f"space.{names[name]} mixes numbers and strings in {grid}, expected only one kind; change it"
            )
    if not grids:
        raise ConfigError(
            "there is nothing to tune: one model, no language_model, and a search without a length penalty"
        )
    return {name: sorted(set(grid)) for name, grid in grids.items()}


def _plan(options: Tune, grids: Mapping[str, list[Any]]) -> Plan:
    """Returns a sweep over all points of the grids if there are few, otherwise over the whole ranges of numbers."""
    most = _RERANKINGS if _is_rerank(options.search) else options.searches
    points = math.prod(map(len, grids.values()))
    space: dict[str, Any] = {name: CategoricalDistribution(grid) for name, grid in grids.items()}
    if points > most:
        numbers = {name: grid for name, grid in grids.items() if any(isinstance(value, float) for value in grid)}
        space |= {name: FloatDistribution(grid[0], grid[-1]) for name, grid in numbers.items()}
    typed = [option for option in typed_options() if option_key(option) not in ("searches", "run_dir")]
    options.run_dir.mkdir(parents=True, exist_ok=True)  # for the database of the study
    plan: Plan = build(
        options.sweep, trials=min(points, most), space=space, fixed=typed, objectives={"bleu": "maximize"}
    )
    return plan if points > most else replace(plan, sampler=BruteForceSampler)


def best_texts(
    lists: Sequence[Sequence[ScoredHypothesis]],
    weights: Sequence[float],
    length_penalty: float,
    decode: Callable[[Sequence[int]], str],
) -> list[str]:
    """Returns the texts that ``Rerank`` would choose."""
    best = [n_best[ranked(n_best, weights, length_penalty)[0][0]] for n_best in lists]
    return [decode(scored.hypothesis.tokens) for scored in best]


def _tuned(models: Models, best: Point, validation: dict[str, Any]) -> TunedWeights:
    """Returns the content of ``weights.json``."""
    options = models.options
    fused = best.get("language_model_weight", options.language_model_weight) if models.language_model else 0.0
    weights = models.numbers("weights", best)
    together = len(weights) > 1 or fused > 0
    searched = [key for key in best if key.startswith("search.")]
    found = {
        "ckpt": path_list(options.ckpt),
        "bundle": path_list(options.bundle),
        "average": options.average,
        "ensemble": best.get("ensemble", options.ensemble) if together else None,
        "weights": weights if together else None,
        "language_model": str(options.language_model) if fused > 0 else None,
        "language_model_weight": fused,
        **{key: best[key] for key, value in flatten(options.space) if isinstance(value, list) and key in searched},
    }
    if _is_rerank(options.search):
        found |= {f"search.{name}": list(options.search[name]) for name in ("models", "proposers")}
        found["search.weights"] = models.numbers("search.weights", best)
    return TunedWeights(options.search["_target_"], found, validation)


def _numbered(name: str, values: Sequence[float]) -> dict[str, Any]:
    return {f"{name}[{index}]": value for index, value in enumerate(values)}


def _is_rerank(search: DictConfig) -> bool:
    return target_of(search, "search") is rerank
