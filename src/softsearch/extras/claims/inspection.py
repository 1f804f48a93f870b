"""Measures of finished runs from their models and logs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import torch
from omegaconf import OmegaConf

from softsearch import lab
from softsearch.app import read_metrics
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.measures import Runs, chosen, evaluated
from softsearch.extras.claims.verdict import Row
from softsearch.extras.shared.train_process import logged_values


@dataclass(frozen=True, kw_only=True)
class ModelMeasure:
    """Rows computed by a function of models.

    Args:
        rows: a function of a run's model, its test set and the cache folder.
        runs: names of the runs; null for all.
        seeds: seeds of these runs; null for all.
        weights: ``trained``, or ``initial`` for a new model with the run's config and seed.
        translator: a run of the claim; the function gets the translations of its test set, by the model of the first
            seed, as option ``translations``, so that all models have the same ones.
    """

    rows: Callable[..., Iterable[Row]]
    runs: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    weights: Sequence[Literal["initial", "trained"]] = ("trained",)
    translator: str | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Opens each run."""
        found = []
        for run, seed, folder in _each(runs, self.runs):
            if self.seeds is not None and seed not in self.seeds:
                continue
            opened = lab.Run(folder)
            inspected, text = _inspected(run, opened)
            rows = self.rows
            if self.translator is not None:
                first = next(iter(runs[self.translator].values()))
                (translated,) = evaluated([first], ()).systems
                rows = partial(rows, translations=translated.hypotheses)
            for weights in self.weights:
                if weights == "initial":
                    torch.manual_seed(seed)
                labels: Row = {"run": run, "seed": seed, "weights": weights}
                measured = replace(inspected, model=opened.new_model()) if weights == "initial" else inspected
                found += [labels | row for row in rows(measured, text, opened.cache_dir)]
        return found


@dataclass(frozen=True, kw_only=True)
class SeedMeasure:
    """Rows computed by a function of the models of a run, one for each seed.

    Args:
        rows: a function of the models, their test set and the cache folder.
        runs: names of the runs; null for all.
    """

    rows: Callable[[Sequence[Inspected], HeldOutText, Path], Iterable[Row]]
    runs: Sequence[str] | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Opens the models of each run."""
        found: list[Row] = []
        for run, seeds in chosen(runs, self.runs).items():
            opened = [lab.Run(folder) for folder in seeds.values()]
            inspected = [_inspected(run, each) for each in opened]
            models, text = [each for each, _ in inspected], inspected[0][1]
            found += [{"run": run} | row for row in self.rows(models, text, opened[0].cache_dir)]
        return found


@dataclass(frozen=True, kw_only=True)
class PairMeasure:
    """Rows by seed and ``partner``, computed by a function of two models: a run's, and that of a partner.

    Args:
        rows: a function of the two models, their test set and the cache folder.
        run: name of the run.
        partners: names of runs. The run itself pairs its first seed with the second, the third with the fourth, and so
            on; another partner is the model of the same seed, of the first one of each of these pairs. So no two rows
            of a partner share a model.
    """

    rows: Callable[[Sequence[Inspected], HeldOutText, Path], Iterable[Row]]
    run: str
    partners: Sequence[str]

    def __call__(self, runs: Runs) -> list[Row]:
        """Opens the models of each pair."""
        found: list[Row] = []
        seeds = list(runs[self.run])
        pairs = [*zip(seeds[::2], seeds[1::2], strict=False)]  # without an odd last seed
        for partner, (seed, following) in product(self.partners, pairs):
            first, second = runs[self.run][seed], runs[partner][following if partner == self.run else seed]
            opened = [lab.Run(folder) for folder in (first, second)]
            (one, text), (other, _) = (_inspected(self.run, each) for each in opened)
            labels: Row = {"run": self.run, "partner": partner}
            found += [labels | row | {"seed": seed} for row in self.rows([one, other], text, opened[0].cache_dir)]
        return found


def _inspected(name: str, run: lab.Run) -> tuple[Inspected, HeldOutText]:
    """Returns the model of a run, on the CPU, and its test set."""
    found = Inspected(name=name, model=run.model.cpu(), tokenizers=run.tokenizers, source=run.source)
    return found, run.held_out()


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A row per run with logged values, and the ``perplexity`` on its test set.

    Args:
        final: columns for values in ``metrics.json``, such as ``{bleu: test/bleu}``.
        largest: columns for the largest value of a column in ``metrics.csv``.
        config: columns for options of the run, such as ``{pairs: data.train_size}``.
        runs: names of the runs; null for all.
    """

    final: Mapping[str, str] | None = None
    largest: Mapping[str, str] | None = None
    config: Mapping[str, str] | None = None
    runs: Sequence[str] | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Reads each run's files."""
        rows = []
        for run, seed, folder in _each(runs, self.runs):
            final, config = read_metrics(folder), OmegaConf.load(folder / "config.yaml")
            row: Row = {"run": run, "seed": seed, "perplexity": math.exp(min(final["test/loss"], 700))}
            row |= {name: final[key] for name, key in (self.final or {}).items()}
            for name, key in (self.largest or {}).items():
                row[name] = max(value for _, value in logged_values(folder, key))
            rows.append(row | {name: OmegaConf.select(config, key) for name, key in (self.config or {}).items()})
        return rows


def _each(runs: Runs, names: Sequence[str] | None) -> list[tuple[str, int, Path]]:
    return [(run, *item) for run, seeds in chosen(runs, names).items() for item in seeds.items()]
